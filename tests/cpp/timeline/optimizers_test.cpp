// Loops with more than one optimizer, with closures, or with none.
#include "stream.h"

using namespace gpuutil;
using namespace gpuutil::test;

namespace {

int64_t count_with(const Outcome& o, uint32_t fetches, uint32_t optimizer_ends) {
  return std::count_if(o.steps.begin(), o.steps.end(), [=](const Step& s) {
    return s.micro_steps == fetches && s.optimizer_ends == optimizer_ends;
  });
}

}  // namespace

TEST_CASE("a GAN's two optimizers make one step, discriminator first") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 10; ++i) {
    s.fetch(50_ms).forward(10_ms).backward(10_ms).optimizer(2_ms, kCritic);
    s.forward(10_ms).backward(10_ms).optimizer(2_ms, kGenerator);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  CHECK(count_with(o, 1, 2) == 10);
  CHECK(o.steps[4].wall_ns() == 94_ms);
}

TEST_CASE("a GAN without a loader has one step a turn") {
  Stream s = loop();
  for (int i = 0; i < 10; ++i)
    s.pass(20_ms).optimizer(2_ms, kCritic).pass(20_ms).optimizer(2_ms, kGenerator);
  const Outcome o = assemble(s);
  CHECK(o.steps.size() == 10);
  CHECK(count_with(o, 0, 2) == 10);
}

TEST_CASE("a GAN whose discriminator update is skipped once keeps its turns") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 10; ++i) {
    s.fetch(50_ms).forward(10_ms).backward(10_ms);
    if (i != 6) s.optimizer(2_ms, kCritic);
    s.forward(10_ms).backward(10_ms);
    if (i != 8) s.optimizer(2_ms, kGenerator);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  CHECK(count_with(o, 1, 2) == 8);
  CHECK(o.steps[6].optimizer_ends == 1);
  CHECK(o.steps[8].optimizer_ends == 1);
}

TEST_CASE("five critic updates and one generator update are one step") {
  for (const bool own_fetch : {true, false}) {
    Stream s = loop();
    s.iter();
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 5; ++k) {
        if (k == 0 || own_fetch) s.fetch(20_ms);
        s.forward(10_ms).backward(10_ms).optimizer(2_ms, kCritic);
      }
      s.forward(10_ms).backward(10_ms).optimizer(2_ms, kGenerator);
    }
    s.exhausted();
    const Outcome o = assemble(s);
    // The generator is met after five critic updates that looked like steps; from then on turns are
    // whole.
    CHECK(count_with(o, own_fetch ? 5 : 1, 6) == (own_fetch ? 7 : 8));
    for (size_t i = o.steps.size() - 7; i < o.steps.size(); ++i)
      CHECK(o.steps[i].optimizer_ends == 6);
  }
}

TEST_CASE("two optimizers that always step together make one step") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 8; ++i) s.plain_step().optimizer(1_ms, kCritic);
  s.exhausted();
  const Outcome o = assemble(s);
  CHECK(count_with(o, 1, 2) == 8);
}

TEST_CASE("an optimizer that steps twice a batch makes one step") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 8; ++i) s.plain_step().forward(10_ms).backward(10_ms).optimizer(1_ms);
  s.exhausted();
  const Outcome o = assemble(s);
  CHECK(count_with(o, 1, 2) == 8);
}

TEST_CASE("an optimizer that steps once in a hundred times does not make steps of a hundred") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 250; ++i) {
    s.fetch(1_ms).forward(1_ms).backward(1_ms).optimizer(1_ms);
    if (i % 100 == 50) s.optimizer(1_ms, kCritic);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  CHECK(o.steps.size() == 250);
}

TEST_CASE("a new optimizer in a later cell of a notebook starts to end the steps") {
  Stream s = loop();
  s.iter().plain_steps(6).exhausted();
  s.iter();
  for (int i = 0; i < 6; ++i)
    s.fetch(80_ms).forward(10_ms).backward(20_ms).optimizer(5_ms, kCritic);
  s.exhausted();
  const Outcome o = assemble(s);
  CHECK(o.steps.size() == 12);
  CHECK(count_with(o, 1, 1) == 12);
}

TEST_CASE("a closure runs inside the optimizer and its step ends with it") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 8; ++i) {
    s.fetch(50_ms).optimizer_begin();
    for (int evaluation = 0; evaluation < 3; ++evaluation) {
      s.zero_grad(1_ms).forward(10_ms).backward(20_ms);
      s.complete(EventKind::op, 2_ms);  // the optimizer's own arithmetic
    }
    s.optimizer_end();
  }
  s.sampling(false).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  const Step& step = o.steps[5];
  CHECK(step.sampled);
  CHECK(step.phases[Phase::input_wait] == 50_ms);
  CHECK(step.phases[Phase::forward] == 30_ms);
  CHECK(step.phases[Phase::backward] == 60_ms);
  CHECK(step.phases[Phase::optimizer] == 9_ms);
  CHECK(step.phases[Phase::other] == 0);
}

TEST_CASE("a closure that fetches inside the optimizer has its waits told apart") {
  Stream s = loop();
  s.iter().sampling(true);
  for (int i = 0; i < 6; ++i) {
    s.optimizer_begin()
        .fetch(50_ms)
        .zero_grad(1_ms)
        .forward(10_ms)
        .backward(20_ms)
        .pass(3_ms)
        .optimizer_end();
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[4].micro_steps == 1);
  CHECK(o.steps[4].phases[Phase::input_wait] == 50_ms);
  CHECK(o.steps[4].phases[Phase::forward] == 10_ms);
  CHECK(o.steps[4].phases[Phase::backward] == 20_ms);
  CHECK(o.steps[4].phases[Phase::optimizer] == 4_ms);
}

TEST_CASE("optimizers that run inside backward fall back to fetches as boundaries") {
  Stream s = loop();
  s.iter().sampling(true);
  int64_t third_fetch_ns = 0;
  for (int i = 0; i < 8; ++i) {
    if (i == 3) third_fetch_ns = s.now_ns();
    s.fetch(50_ms).forward(10_ms);
    for (uint32_t parameter = 0; parameter < 20; ++parameter) {
      s.complete(EventKind::backward_node, 1_ms).optimizer(500_us, 1000 + parameter);
    }
    s.complete(EventKind::backward_node, 1_ms).pass(100_us);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  CHECK(count_with(o, 1, 20) == 8);
  CHECK(o.steps[3].begin_ns == third_fetch_ns);
  CHECK(o.steps[3].phases[Phase::backward] == 21_ms);
  CHECK(o.steps[3].phases[Phase::optimizer] == 10_ms);
  CHECK(o.steps[3].phases[Phase::forward] == 10_ms);
  CHECK(o.turns.front().steps == 8);
}

TEST_CASE("updates by hand end their step at the next fetch") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 10; ++i) s.fetch(50_ms).forward(10_ms).backward(10_ms).pass(1_ms);
  s.exhausted();
  s.iter();
  for (int i = 0; i < 4; ++i) s.fetch(50_ms).forward(10_ms).backward(10_ms).pass(1_ms);
  s.pass(2_ms);
  const int64_t broken_ns = s.now_ns();
  s.iter();
  for (int i = 0; i < 4; ++i) s.fetch(50_ms).forward(10_ms).backward(10_ms).pass(1_ms);
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 18);
  CHECK(count_with(o, 1, 0) == 18);
  CHECK(o.steps[4].wall_ns() == 71_ms);
  REQUIRE(o.turns.size() == 4);
  CHECK(o.turns[0].steps == 10);
  CHECK(o.turns[1].kind == EpochEnd::new_iterator);
  CHECK(o.turns[1].end_ns == broken_ns);
  CHECK(o.turns[1].steps == 4);
}

TEST_CASE(
    "updates by hand with neither loader nor optimizer end their step with backward, where "
    "sampled") {
  Stream s = loop();
  s.sampling(true);
  for (int i = 0; i < 8; ++i) s.forward(10_ms).backward(20_ms).complete(EventKind::op, 1_ms);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  CHECK(o.steps[4].wall_ns() == 31_ms);
}

TEST_CASE("without a loader optimizer ends alone make steps and the wait is no phase") {
  Stream s = loop();
  for (int i = 0; i < 8; ++i) s.pass(30_ms).optimizer(5_ms);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  CHECK(count_with(o, 0, 1) == 8);
  CHECK(o.steps[4].loader == 0);
  CHECK(o.steps[4].phases[Phase::input_wait] == 0);
  REQUIRE(o.turns.size() == 1);
  CHECK(o.turns[0].kind == EpochEnd::end);
  CHECK(o.turns[0].steps == 8);
}

TEST_CASE("an observation of the given span contains a whole step wherever it begins") {
  for (size_t first = 20; first < 26; ++first) {
    Stream s = loop();
    s.iter();
    size_t ends = 0;
    const auto step = [&](uint32_t id) {
      s.forward(10_ms).backward(10_ms).optimizer(2_ms, id);
      ++ends;
      if (ends == first) s.sampling(true);
      if (ends == first + 12) s.sampling(false);
    };
    for (int i = 0; i < 8; ++i) {
      s.fetch(20_ms);
      for (int k = 0; k < 5; ++k) step(kCritic);
      step(kGenerator);
    }
    Outcome o;
    StepAssembler assembler([&](const Step& t) { o.steps.push_back(t); }, [](const EpochTurn&) {},
                            s.start_ns());
    feed(assembler, s.events(), s.start_ns());
    CHECK(assembler.cycle().optimizer_ends == 6);
    CHECK(assembler.cycle().observation_span() == 12);
    CHECK(std::any_of(o.steps.begin(), o.steps.end(), [](const Step& t) { return t.sampled; }));
  }
}
