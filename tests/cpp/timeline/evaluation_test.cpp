// Evaluation loops are no steps; several loaders; loaders on other threads.
#include "stream.h"

using namespace gpuutil;
using namespace gpuutil::test;

namespace {

Stream& evaluate(Stream& s, uint32_t loader, int batches, uint16_t flags = 0,
                 bool to_the_end = true) {
  s.iter(loader);
  for (int i = 0; i < batches; ++i) s.fetch(5_ms, loader, 16, flags).forward(10_ms);
  return to_the_end ? s.exhausted(loader) : s;
}

int64_t evaluation_of(const Outcome& o) {
  int64_t sum = 0;
  for (const Step& step : o.steps) sum += step.phases[Phase::evaluation];
  return sum;
}

}  // namespace

TEST_CASE("an evaluation between epochs is a phase of the next epoch's first step") {
  for (const uint32_t loader :
       {kValid, kTrain}) {  // another loader, or the training loader once more
    CAPTURE(loader);
    Stream s = loop();
    for (int epoch = 0; epoch < 3; ++epoch) {
      s.iter().plain_steps(6).exhausted();
      evaluate(s, loader, 7);
    }
    const Outcome o = assemble(s);
    REQUIRE(o.steps.size() == 18);
    const int64_t length_ns = 100_us + 7 * 15_ms + 1_ms;
    for (const Step& step : o.steps) {
      const bool first = step.index == 6 || step.index == 12;
      CHECK(step.micro_steps == 1);
      CHECK(step.phases[Phase::evaluation] == (first ? length_ns : 0));
      CHECK(((step.marks & kStepEvaluation) != 0) == first);
    }
    REQUIRE(o.turns.size() == 4);
    CHECK(o.turns[1].steps == 6);
    CHECK(o.turns[3].tail[Phase::evaluation] == length_ns);
    CHECK(o.steps[6].earlier[Phase::evaluation] == 0);
  }
}

TEST_CASE("an evaluation in the middle of an epoch does not end it") {
  for (const uint32_t loader : {kValid, kTrain}) {
    CAPTURE(loader);
    Stream s = loop();
    s.iter().plain_steps(6);
    evaluate(s, loader, 5);
    s.plain_steps(6).exhausted();
    const Outcome o = assemble(s);
    REQUIRE(o.steps.size() == 12);
    CHECK(o.steps[6].phases[Phase::evaluation] == 100_us + 5 * 15_ms + 1_ms);
    CHECK(o.steps[6].micro_steps == 1);
    REQUIRE(o.turns.size() == 2);
    CHECK(o.turns[0].steps == 12);
  }
}

TEST_CASE("an evaluation on the training loader after the last batch leaves the epoch to end") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter().plain_steps(6);
    evaluate(s, kTrain, 5).exhausted();
  }
  const Outcome o = assemble(s);
  CHECK(o.steps.size() == 18);
  REQUIRE(o.turns.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(o.turns[i].kind == EpochEnd::exhausted);
    CHECK(o.turns[i].steps == 6);
  }
}

TEST_CASE("an evaluation that is cut short reaches to the next training batch") {
  Stream s = loop();
  s.iter().plain_steps(6);
  evaluate(s, kValid, 4, 0, false);
  s.plain_steps(6).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 12);
  CHECK(o.steps[6].phases[Phase::evaluation] == 100_us + 4 * 15_ms);
  CHECK(o.steps[6].phases[Phase::input_wait] == 80_ms);
  CHECK(o.steps[6].micro_steps == 1);
}

TEST_CASE("a sanity check before training that is cut short is an evaluation") {
  Stream s = loop();
  evaluate(s, kValid, 2, 0, false);
  s.iter().plain_steps(6).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[0].phases[Phase::evaluation] == 100_us + 2 * 15_ms);
  CHECK(o.steps[0].micro_steps == 1);
}

TEST_CASE("an evaluation before any training is not taken for training") {
  Stream s = loop();
  evaluate(s, kValid, 20);
  s.iter().plain_steps(6).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(evaluation_of(o) == 100_us + 20 * 15_ms + 1_ms);
  CHECK(o.turns.front().loader == kTrain);
}

TEST_CASE("a long evaluation is held in bounded memory and stays one phase") {
  Stream s = loop();
  s.iter().plain_steps(6);
  evaluate(s, kValid, 12'000);
  s.plain_steps(6).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 12);
  CHECK(o.steps[6].phases[Phase::evaluation] == 100_us + 12'000 * 15_ms + 1_ms);
  CHECK(o.steps[6].phases[Phase::input_wait] == 80_ms);
  CHECK(o.steps[6].micro_steps == 1);
}

TEST_CASE("batches fetched without gradients are evaluation where no optimizer can tell") {
  Stream s = loop();
  for (int epoch = 0; epoch < 2; ++epoch) {
    s.iter();
    for (int i = 0; i < 40; ++i) s.fetch(50_ms).forward(10_ms).backward(10_ms);
    s.exhausted();
    evaluate(s, kValid, 30, kFetchNoGrad);
  }
  const Outcome o = assemble(s);
  CHECK(o.steps.size() == 80);
  CHECK(evaluation_of(o) == 100_us + 30 * 15_ms + 1_ms);  // the last one is in the tail
  REQUIRE(o.turns.size() == 3);
  CHECK(o.turns[1].steps == 40);
}

TEST_CASE("a process that only evaluates has no steps") {
  Stream s = loop();
  evaluate(s, kValid, 300, kFetchNoGrad);
  const Outcome o = assemble(s);
  CHECK(o.steps.empty());
  REQUIRE(o.turns.size() == 1);
  CHECK(o.turns[0].tail[Phase::evaluation] == 100_us + 300 * 15_ms + 1_ms);
}

TEST_CASE(
    "two loaders read in step give two batches a step, and the first one's passes are the epochs") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter(kTrain).iter(kSecond);
    for (int i = 0; i < 6; ++i) {
      s.fetch(20_ms, kTrain).fetch(10_ms, kSecond).forward(10_ms).backward(10_ms);
      if (i != 4 || epoch != 1) s.optimizer(2_ms);  // one is skipped
    }
    s.exhausted(kTrain);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 18);
  for (const Step& step : o.steps) {
    CHECK(step.micro_steps == 2);
    CHECK(step.loader == kTrain);
    CHECK(step.phases[Phase::input_wait] >= 30_ms);
    CHECK(step.phases[Phase::evaluation] == 0);
  }
  REQUIRE(o.turns.size() == 4);
  CHECK(o.turns[0].loader == kTrain);
  CHECK(o.turns[1].steps == 6);
}

TEST_CASE("two loaders read in step by a loop that updates by hand give one step a pair") {
  Stream s = loop();
  s.iter(kTrain).iter(kSecond);
  for (int i = 0; i < 6; ++i)
    s.fetch(20_ms, kTrain).fetch(10_ms, kSecond).forward(10_ms).backward(10_ms);
  s.exhausted(kTrain);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  for (const Step& step : o.steps) CHECK(step.micro_steps == 2);
}

TEST_CASE("a second training loader that is read after the first has its own epochs") {
  Stream s = loop();
  s.iter(kTrain);
  for (int i = 0; i < 5; ++i) s.plain_step(kTrain);
  s.exhausted(kTrain).iter(kSecond);
  for (int i = 0; i < 5; ++i) s.plain_step(kSecond);
  s.exhausted(kSecond);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  REQUIRE(o.turns.size() == 3);
  CHECK(o.turns[1].loader == kSecond);
  CHECK(o.turns[1].steps == 5);
}

TEST_CASE("one batch looked at before training is neither evaluation nor training") {
  Stream s = loop();
  s.iter().fetch(30_ms).pass(5_ms);
  s.iter().plain_steps(6).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(evaluation_of(o) == 0);
  CHECK(o.steps[0].micro_steps == 1);
  CHECK(o.steps[0].phases[Phase::input_wait] == 110_ms + 200_us);
}

TEST_CASE("fetches on another thread are not waits of the training thread") {
  Stream s = loop();
  std::vector<ThreadEvent> prefetches;
  for (int i = 0; i < 10; ++i) {
    s.on(kWorker).at(1_s + i * 40_ms).fetch(30_ms);
    s.on(kMain).at(1_s + i * 40_ms + 35_ms).optimizer(5_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  for (const Step& step : o.steps) {
    CHECK(step.phases[Phase::input_wait] == 0);
    CHECK(step.wall_ns() == 40_ms);
  }
}

TEST_CASE("passes of a loader on another thread are epochs all the same") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    const int64_t begin_ns = s.now_ns();
    s.on(kWorker).iter();
    for (int i = 0; i < 10; ++i) {
      s.on(kWorker).at(begin_ns + 1_ms + i * 40_ms).fetch(30_ms);
      s.on(kMain).at(begin_ns + 1_ms + i * 40_ms + 35_ms).optimizer(5_ms);
    }
    s.on(kWorker).exhausted();
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 30);
  REQUIRE(o.turns.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(o.turns[i].kind == EpochEnd::exhausted);
    CHECK(o.turns[i].steps == 10);
  }
}

TEST_CASE("nodes on the threads of the autograd engine are the training thread's backward") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    s.fetch(50_ms).forward(10_ms).backward(20_ms, kAutograd).optimizer(5_ms);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[4].sampled);
  CHECK(o.steps[4].phases[Phase::backward] == 20_ms);
  CHECK(o.steps[4].phases[Phase::forward] == 10_ms);
  CHECK(o.steps[4].phases[Phase::optimizer] == 5_ms);
}

TEST_CASE("work of another thread that trains beside is not counted") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    const int64_t begin_ns = s.now_ns();
    s.plain_step();
    const int64_t end_ns = s.now_ns();
    s.on(kWorker).at(begin_ns + 1_ms).complete(EventKind::op, 10_ms).backward(10_ms);
    s.on(kMain).at(end_ns);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[4].phases[Phase::input_wait] == 80_ms);
  CHECK(o.steps[4].phases[Phase::backward] == 20_ms);
  CHECK(o.steps[4].phases[Phase::forward] == 10_ms);
}

TEST_CASE("a notebook that trains on a fresh thread the second time is followed there") {
  Stream s = loop();
  s.iter().plain_steps(20).on(kWorker);
  s.iter().plain_steps(40);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() > 40);
  CHECK(o.steps.back().wall_ns() == 115_ms);
  CHECK(o.steps.back().phases[Phase::input_wait] == 80_ms);
}

TEST_CASE("an evaluation that is cut short in a loop that fetches ahead is one") {
  Stream s = loop();
  s.iter().fetch(10_ms);
  for (int i = 0; i < 10; ++i) {
    s.fetch(10_ms);
    if (i == 6) evaluate(s, kValid, 3, 0, false);
    s.forward(10_ms).backward(20_ms).optimizer(5_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  CHECK(o.steps[6].phases[Phase::evaluation] ==
        100_us + 3 * 15_ms - 10_ms);  // up to its last batch
  CHECK(o.steps[6].micro_steps == 1);
}

TEST_CASE("a second loader that joins the loop later is training from its second step on") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 6; ++i) s.plain_step();
  s.iter(kSecond);
  for (int i = 0; i < 6; ++i) s.fetch(10_ms, kSecond).plain_step();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 12);
  for (size_t i = 7; i < 12; ++i) {
    CHECK(o.steps[i].micro_steps == 2);
    CHECK(o.steps[i].phases[Phase::evaluation] == 0);
  }
}
