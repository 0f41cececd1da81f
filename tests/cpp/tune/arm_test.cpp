#include "tune/arm.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

StepSample sample(int64_t index, double seconds, double work = 1, int64_t epoch = 0) {
  StepSample result;
  result.index = index;
  result.seconds = seconds;
  result.work = work;
  result.epoch = epoch;
  return result;
}

}  // namespace

TEST_CASE("batches of other sizes compare by time for a sample") {
  StepArm arm(1);
  arm.add(sample(0, 1.0, 10));
  arm.add(sample(1, 2.0, 20));
  CHECK(arm.values() == std::vector<double>{0.1, 0.1});
  CHECK(arm.step_work() == 20);
}

TEST_CASE("a burst of workers counts as one value") {
  StepArm arm(4);
  for (int i = 0; i < 8; ++i) arm.add(sample(i, i % 4 == 0 ? 0.4 : 0.0));
  REQUIRE(arm.values().size() == 2);
  CHECK(arm.values()[0] == doctest::Approx(0.1));
  CHECK(arm.steps() == 8);
}

TEST_CASE("a step that cannot be compared ends the run of steps unused") {
  StepArm arm(2);
  StepSample turn = sample(1, 50);
  turn.countable = false;
  arm.add(sample(0, 1));
  arm.add(turn);
  arm.add(sample(2, 3));
  arm.add(sample(3, 5));
  CHECK(arm.values() == std::vector<double>{4});
  StepSample held = sample(4, 9);
  held.held = true;
  arm.add(held);
  CHECK(arm.values().size() == 1);
}

TEST_CASE("an epoch is whole only when it was seen from its first step") {
  EpochArm arm;
  for (int64_t i = 0; i < 30; ++i) arm.add(sample(i, i == 10 ? 11.0 : 1.0, 2, (i + 5) / 10), true);
  // Seen: half of epoch 0, epochs 1 and 2, and the beginning of 3.
  REQUIRE(arm.values().size() == 2);
  CHECK(arm.values()[0] == doctest::Approx((9 * 1.0 + 11.0) / 20));
  CHECK(arm.values()[1] == doctest::Approx(0.5));
  CHECK(arm.epoch_steps() == 10);
}

TEST_CASE("an epoch in which a setting changed is left out, evaluation is not training time") {
  EpochArm arm;
  for (int64_t i = 0; i < 41; ++i) {
    StepSample step = sample(i, 1, 1, i / 10);
    if (i == 35) {
      step.seconds = 101;
      step.aside_seconds = 100;
    }
    arm.add(step, i != 25);
  }
  CHECK(arm.values() == std::vector<double>{1, 1});  // epochs 1 and 3
}

TEST_CASE("marks decide what may be compared, and an outlier may") {
  Step step;
  step.begin_ns = 0;
  step.end_ns = 1'000'000;
  step.samples = 8;
  CHECK(step_sample(step, false).countable);
  CHECK(step_sample(step, false).work == 8);
  step.marks = kStepOutlier;
  CHECK(step_sample(step, false).countable);
  for (const StepMark mark : {kStepEpochTurn, kStepEvaluation, kStepCheckpoint, kStepFirst,
                              kStepChanged, kStepPartialBatch, kStepDropped}) {
    step.marks = mark;
    CHECK_FALSE(step_sample(step, false).countable);
  }
}

}  // namespace gpuutil
