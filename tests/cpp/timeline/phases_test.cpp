// What the training thread was doing, to the nanosecond; marks; sampled steps.
#include "stream.h"

using namespace gpuutil;
using namespace gpuutil::test;

TEST_CASE("a sampled step tells every phase apart, and its neighbours only the wait") {
  Stream s = loop();
  s.iter().plain_steps(5).sampling(true);
  s.fetch(80_ms).put(EventKind::fetch_cpu, kTrain, 60_ms);
  s.copy(2_ms).zero_grad(1_ms).forward(10_ms).sync(3_ms).backward(20_ms).optimizer(5_ms);
  s.sampling(false).plain_steps(5);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 11);
  const Step& step = o.steps[5];
  CHECK(step.sampled);
  CHECK(step.marks == kStepClean);
  CHECK(step.phases[Phase::input_wait] == 80_ms);
  CHECK(step.phases[Phase::host_to_device] == 2_ms);
  CHECK(step.phases[Phase::forward] == 10_ms);
  CHECK(step.phases[Phase::sync_wait] == 3_ms);
  CHECK(step.phases[Phase::backward] == 20_ms);
  CHECK(step.phases[Phase::optimizer] == 6_ms);
  CHECK(step.phases[Phase::other] == 0);
  CHECK(step.fetch_cpu_ns == 60_ms);
  CHECK(step.operator_ns == 41_ms);
  CHECK(step.python_gap_ns == 0);
  CHECK(step.events == 11);
  for (const size_t i : {size_t{4}, size_t{6}}) {
    CHECK_FALSE(o.steps[i].sampled);
    CHECK(o.steps[i].phases[Phase::other] == 35_ms);
    CHECK(o.steps[i].operator_ns == 0);
  }
}

TEST_CASE("a step that was sampled in part only is not sampled") {
  Stream s = loop();
  s.iter().plain_steps(5).fetch(80_ms).sampling(true).forward(10_ms).backward(20_ms).optimizer(
      5_ms);
  s.fetch(80_ms).forward(10_ms).sampling(false).backward(20_ms).optimizer(5_ms).plain_steps(2);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 9);
  for (const Step& step : o.steps) CHECK_FALSE(step.sampled);
  CHECK(o.steps[5].phases[Phase::forward] == 0);
  CHECK(o.steps[5].phases[Phase::other] == 35_ms);
}

TEST_CASE(
    "pauses between operators belong to forward while short, and are the user's own work when "
    "long") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    s.fetch(50_ms).forward(10_ms, 4, 100_us);  // short pauses, the last one before a long one
    s.pass(5_ms).forward(4_ms, 2).backward(20_ms).pass(7_ms).optimizer(5_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  const Step& step = o.steps[4];
  CHECK(step.phases[Phase::forward] == 10_ms - 100_us + 4_ms);
  CHECK(step.phases[Phase::other] == 5_ms + 100_us + 7_ms);
  CHECK(step.python_gap_ns == 12_ms + 400_us);
  CHECK(step.user_python_ns == 12_ms + 100_us);
  CHECK(step.operator_ns == 10_ms + 4_ms - 400_us + 25_ms);
}

TEST_CASE("operators inside a fetch are the fetch's, operators after backward are no forward") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    s.put(EventKind::fetch_begin, kTrain).pass(40_ms).complete(EventKind::op, 10_ms);
    s.put(EventKind::fetch_end, kTrain, 16, kFetchBatch);
    s.forward(10_ms).backward(20_ms).complete(EventKind::op, 3_ms).optimizer(5_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  const Step& step = o.steps[4];
  CHECK(step.phases[Phase::input_wait] == 50_ms);
  CHECK(step.phases[Phase::forward] == 10_ms);
  CHECK(step.phases[Phase::other] == 3_ms);
  CHECK(step.operator_ns == 38_ms);
}

TEST_CASE("each micro-batch has a forward and a backward of its own") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 3; ++k) s.fetch(10_ms).forward(5_ms).backward(6_ms);
    s.optimizer(2_ms).zero_grad(1_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  const Step& step = o.steps[4];
  CHECK(step.phases[Phase::input_wait] == 30_ms);
  CHECK(step.phases[Phase::forward] == 15_ms);
  CHECK(step.phases[Phase::backward] == 18_ms);
  CHECK(step.phases[Phase::optimizer] == 3_ms);
}

TEST_CASE("both halves of a GAN's turn have forward and backward") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    s.fetch(50_ms).forward(10_ms).backward(11_ms).forward(4_ms).backward(5_ms).optimizer(2_ms,
                                                                                         kCritic);
    s.forward(12_ms).backward(13_ms).optimizer(3_ms, kGenerator);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[4].phases[Phase::forward] == 26_ms);
  CHECK(o.steps[4].phases[Phase::backward] == 29_ms);
  CHECK(o.steps[4].phases[Phase::optimizer] == 5_ms);
  CHECK(o.steps[4].phases[Phase::other] == 0);
}

TEST_CASE("spans win over everything, the innermost over those around it") {
  Stream s = loop();
  s.iter().plain_steps(5);
  s.span_begin(Phase::logging).pass(3_ms).span(Phase::checkpoint, 10_ms).pass(4_ms);
  s.fetch(5_ms).span_end(Phase::logging).pass(20_ms).optimizer(5_ms).plain_steps(2);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  const Step& step = o.steps[5];
  CHECK(step.phases[Phase::logging] == 12_ms);
  CHECK(step.phases[Phase::checkpoint] == 10_ms);
  CHECK(step.phases[Phase::input_wait] == 0);
  CHECK(step.phases[Phase::other] == 25_ms);
  CHECK((step.marks & kStepCheckpoint) != 0);
  CHECK((o.steps[7].marks & kStepCheckpoint) == 0);
}

TEST_CASE("a span that lies across the end of a step is cut there") {
  Stream s = loop();
  s.iter().plain_steps(5).fetch(80_ms).span_begin(Phase::logging).pass(5_ms).optimizer(5_ms);
  s.pass(2_ms).span_end(Phase::logging).plain_steps(2);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  CHECK(o.steps[5].phases[Phase::logging] == 10_ms);
  CHECK(o.steps[6].phases[Phase::logging] == 2_ms);
  CHECK(o.steps[7].phases[Phase::logging] == 0);
}

TEST_CASE("a step of over five times the usual length is an outlier, until that is usual") {
  Stream s = loop();
  s.iter().plain_steps(20).fetch(900_ms).optimizer(5_ms).plain_steps(5);
  for (int i = 0; i < 50; ++i) s.fetch(900_ms).optimizer(5_ms);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 76);
  CHECK(o.steps[20].marks == kStepOutlier);
  CHECK(o.steps[21].marks == kStepClean);
  CHECK(o.steps[26].marks == kStepOutlier);
  CHECK(o.steps[75].marks == kStepClean);
}

TEST_CASE("the smaller last batch of an epoch is marked") {
  Stream s = loop();
  for (int epoch = 0; epoch < 2; ++epoch) s.iter().plain_steps(6).plain_step(kTrain, 5).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 14);
  for (const Step& step : o.steps) {
    CHECK(((step.marks & kStepPartialBatch) != 0) == (step.index % 7 == 6));
  }
}

TEST_CASE("marks from outside go to the step that contains the time") {
  Stream s = loop();
  s.iter().plain_steps(10);
  std::vector<Step> steps;
  StepAssembler assembler([&](const Step& step) { steps.push_back(step); }, [](const EpochTurn&) {},
                          s.start_ns());
  assembler.mark(s.start_ns() + 100_us + 5 * 115_ms + 1, kStepChanged);
  assembler.mark(s.start_ns() + 100_us + 7 * 115_ms + 1, s.start_ns() + 100_us + 8 * 115_ms + 1,
                 kStepDropped);
  feed(assembler, s.events(), s.start_ns());
  REQUIRE(steps.size() == 10);
  for (const Step& step : steps) {
    CHECK(((step.marks & kStepChanged) != 0) == (step.index == 5));
    CHECK(((step.marks & kStepDropped) != 0) == (step.index == 7 || step.index == 8));
  }
}
