// Which steps and epochs the usual loops have.
#include "stream.h"

using namespace gpuutil;
using namespace gpuutil::test;

TEST_CASE("a plain loop has one step for each optimizer end") {
  Stream s = loop();
  s.iter().plain_steps(10).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  for (const Step& step : o.steps) {
    CHECK(step.micro_steps == 1);
    CHECK(step.optimizer_ends == 1);
    CHECK(step.samples == 16);
    CHECK(step.loader == kTrain);
    CHECK(step.epoch == 0);
    CHECK_FALSE(step.sampled);
  }
  CHECK(o.steps[5].wall_ns() == 115_ms);
  CHECK(o.steps[5].phases[Phase::input_wait] == 80_ms);
  CHECK(o.steps[5].phases[Phase::other] == 35_ms);
  CHECK(o.steps[5].marks == kStepClean);
  CHECK(o.steps[2].marks == kStepFirst);
  CHECK((o.steps[0].marks & kStepEpochTurn) != 0);                // the pass begins in it
  CHECK(o.steps[0].phases[Phase::input_wait] == 80_ms + 100_us);  // making the iterator included

  REQUIRE(o.turns.size() == 2);
  CHECK(o.turns[0].kind == EpochEnd::exhausted);
  CHECK(o.turns[0].loader == kTrain);
  CHECK(o.turns[0].steps == 10);
  CHECK(o.turns[0].samples == 160);
  CHECK(o.turns[0].tail[Phase::input_wait] == 1_ms);
  CHECK(o.turns[1].kind == EpochEnd::end);
  CHECK(o.turns[1].steps == 0);
}

TEST_CASE("in a known loop a step is handed on when its end was drained") {
  Stream s = loop();
  s.iter().plain_steps(8);
  std::vector<Step> steps;
  StepAssembler assembler([&](const Step& step) { steps.push_back(step); }, [](const EpochTurn&) {},
                          s.start_ns());
  feed(assembler, s.events(), s.start_ns());
  CHECK(steps.size() == 8);
  CHECK(assembler.training_thread() == kMain);
  CHECK(assembler.cycle().learnt);
  CHECK(assembler.cycle().fetches == 1);
  CHECK(assembler.cycle().optimizer_ends == 1);
}

TEST_CASE("an epoch turn is handed on at once when no step is under way") {
  Stream s = loop();
  s.iter().plain_steps(5).exhausted();
  std::vector<EpochTurn> turns;
  StepAssembler assembler([](const Step&) {}, [&](const EpochTurn& t) { turns.push_back(t); },
                          s.start_ns());
  feed(assembler, s.events(), s.start_ns());
  REQUIRE(turns.size() == 1);
  CHECK(turns[0].end_ns == s.now_ns());
}

TEST_CASE("micro-batches belong to the step that their optimizer end closes") {
  Stream s = loop();
  s.iter();
  for (int step = 0; step < 6; ++step) {
    for (int k = 0; k < 4; ++k) s.fetch(10_ms).forward(5_ms).backward(5_ms);
    s.optimizer(2_ms);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 6);
  for (const Step& step : o.steps) {
    CHECK(step.micro_steps == 4);
    CHECK(step.optimizer_ends == 1);
    CHECK(step.samples == 64);
  }
}

TEST_CASE("what is left of an accumulation at the end of a pass is a partial step of its own") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter();
    for (int batch = 0; batch < 18; ++batch) {
      s.fetch(10_ms).forward(5_ms).backward(5_ms);
      if (batch % 4 == 3) s.optimizer(2_ms);
    }
    s.exhausted();
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 15);
  for (size_t i = 0; i < o.steps.size(); ++i) {
    CHECK(o.steps[i].micro_steps == (i % 5 == 4 ? 2 : 4));
    CHECK(((o.steps[i].marks & kStepPartialBatch) != 0) == (i % 5 == 4));
    CHECK(o.steps[i].epoch == static_cast<int64_t>(i / 5));
  }
  REQUIRE(o.turns.size() == 4);
  CHECK(o.turns[1].steps == 5);
}

TEST_CASE(
    "what is left of an accumulation and stepped on after the loop is one step with its "
    "optimizer") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter();
    for (int batch = 0; batch < 18; ++batch) {
      s.fetch(10_ms).forward(5_ms).backward(5_ms);
      if (batch % 4 == 3) s.optimizer(2_ms);
    }
    s.exhausted().optimizer(2_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 15);
  for (size_t i = 0; i < o.steps.size(); ++i) {
    CHECK(o.steps[i].micro_steps == (i % 5 == 4 ? 2 : 4));
    CHECK(o.steps[i].optimizer_ends == 1);
  }
}

TEST_CASE("an accumulating loop that fetches one batch ahead has a step for each optimizer end") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter().fetch(10_ms);
    for (int batch = 1; batch <= 12; ++batch) {
      batch < 12 ? s.fetch(10_ms) : s.exhausted();
      s.forward(10_ms).backward(20_ms);
      if (batch % 4 == 0) s.optimizer(5_ms);
    }
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 9);
  for (const Step& step : o.steps) CHECK(step.optimizer_ends == 1);
  CHECK(o.turns.size() == 4);
}

TEST_CASE("a step whose optimizer GradScaler skips ends at the next fetch") {
  Stream s = loop();
  s.iter().plain_steps(6).fetch(80_ms).forward(10_ms).backward(20_ms).pass(1_ms);
  const int64_t skipped_end_ns = s.now_ns();
  s.plain_steps(3).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  CHECK(o.steps[6].optimizer_ends == 0);
  CHECK(o.steps[6].micro_steps == 1);
  CHECK(o.steps[6].end_ns == skipped_end_ns);
  CHECK(o.steps[7].micro_steps == 1);
  CHECK(o.steps[7].optimizer_ends == 1);
}

TEST_CASE("skipped steps at the very start and at the start and end of a pass are steps too") {
  Stream s = loop();
  for (int epoch = 0; epoch < 2; ++epoch) {
    s.iter();
    for (int i = 0; i < 2; ++i) s.fetch(80_ms).forward(10_ms).backward(20_ms);  // skipped
    s.plain_steps(6);
    s.fetch(80_ms).forward(10_ms).backward(20_ms);  // skipped
    s.exhausted();
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 18);
  for (size_t i = 0; i < o.steps.size(); ++i) {
    const bool skipped = i % 9 < 2 || i % 9 == 8;
    CHECK(o.steps[i].micro_steps == 1);
    CHECK(o.steps[i].optimizer_ends == (skipped ? 0 : 1));
    CHECK(o.steps[i].epoch == static_cast<int64_t>(i / 9));
  }
}

TEST_CASE("a skip in an accumulation ends its step after the usual number of batches") {
  Stream s = loop();
  s.iter();
  for (int step = 0; step < 8; ++step) {
    for (int k = 0; k < 4; ++k) s.fetch(10_ms).forward(5_ms).backward(5_ms);
    if (step != 5) s.optimizer(2_ms);
  }
  s.exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 8);
  for (size_t i = 0; i < 8; ++i) {
    CHECK(o.steps[i].micro_steps == 4);
    CHECK(o.steps[i].optimizer_ends == (i == 5 ? 0 : 1));
  }
}

TEST_CASE("a loop that changes its accumulation gets steps of the new size") {
  Stream s = loop();
  s.iter().plain_steps(8);
  for (int step = 0; step < 8; ++step) {
    for (int k = 0; k < 3; ++k) s.fetch(10_ms).forward(5_ms).backward(5_ms);
    s.optimizer(2_ms);
  }
  const Outcome o = assemble(s);
  for (size_t i = o.steps.size() - 4; i < o.steps.size(); ++i) {
    CHECK(o.steps[i].micro_steps == 3);
    CHECK(o.steps[i].optimizer_ends == 1);
  }
}

TEST_CASE("a loop that fetches one batch ahead has no step more than it has optimizer ends") {
  Stream s = loop();
  for (int epoch = 0; epoch < 3; ++epoch) {
    s.iter().fetch(10_ms);
    for (int i = 0; i < 5; ++i) s.fetch(10_ms).forward(10_ms).backward(20_ms).optimizer(5_ms);
    s.exhausted().forward(10_ms).backward(20_ms).optimizer(5_ms);
  }
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 18);
  for (const Step& step : o.steps) CHECK(step.optimizer_ends == 1);
  CHECK(o.turns.size() == 4);
}

TEST_CASE("an early break ends the epoch where the next iterator is made") {
  Stream s = loop();
  s.iter().plain_steps(5);
  s.pass(3_ms);
  const int64_t second_ns = s.now_ns();
  s.iter().plain_steps(5).exhausted();
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 10);
  REQUIRE(o.turns.size() == 3);
  CHECK(o.turns[0].kind == EpochEnd::new_iterator);
  CHECK(o.turns[0].end_ns == second_ns);
  CHECK(o.turns[0].steps == 5);
  CHECK(o.turns[1].kind == EpochEnd::exhausted);
  CHECK(o.turns[1].steps == 5);
  CHECK((o.steps[5].marks & kStepEpochTurn) != 0);
  CHECK(o.steps[5].earlier[Phase::other] == 3_ms);
  CHECK(o.steps[5].epoch == 1);
}

TEST_CASE(
    "once mon.epoch() was called only it ends epochs, and once mon.step() was called only it ends "
    "steps") {
  Stream s = loop();
  s.user_epoch(1).iter();
  for (int i = 0; i < 4; ++i) s.plain_step().plain_step().user_step();
  s.exhausted().iter().plain_step().plain_step().user_step().user_epoch(2);
  const Outcome o = assemble(s);
  REQUIRE(o.steps.size() == 5);
  for (const Step& step : o.steps) {
    CHECK(step.micro_steps == 2);
    CHECK(step.optimizer_ends == 2);
  }
  REQUIRE(o.turns.size() == 3);
  CHECK(o.turns[1].kind == EpochEnd::user_epoch);
  CHECK(o.turns[1].user_number == 2);
  CHECK(o.turns[1].steps == 5);
}
