// A step as trials see it: time for an amount of work, and whether it may be compared. Pure, any
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "timeline/step.h"

namespace gpuutil {

struct StepSample {
  int64_t index = 0;
  int64_t epoch = 0;
  double seconds = 0;
  double wait_seconds = 0;  // of it waiting for input
  double aside_seconds =
      0;            // of it in evaluation and checkpoints: no part of an epoch's training time
  double work = 1;  // samples; micro-steps where samples are unknown
  bool counts_samples = false;
  bool countable = true;  // may enter an arm
  bool held = false;      // somebody else was taking CPU from us
};

// Outliers stay countable. With N workers every Nth step waits for all of them, easily five times
// the median, and to leave those steps out would make any such loader look free; arms are robust by
// trimmed means instead.
inline constexpr uint32_t kUncountable = kStepEpochTurn | kStepEvaluation | kStepCheckpoint |
                                         kStepFirst | kStepChanged | kStepPartialBatch |
                                         kStepDropped;

inline StepSample step_sample(const Step& step, bool held) {
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  StepSample sample;
  sample.index = step.index;
  sample.epoch = step.epoch;
  sample.seconds = seconds(step.wall_ns());
  sample.wait_seconds = seconds(step.phases[Phase::input_wait]);
  sample.aside_seconds = seconds(step.phases[Phase::evaluation] + step.phases[Phase::checkpoint]);
  sample.counts_samples = step.samples > 0;
  sample.work =
      static_cast<double>(step.samples > 0 ? step.samples : std::max<int64_t>(1, step.micro_steps));
  sample.countable = (step.marks & kUncountable) == 0 && step.wall_ns() > 0;
  sample.held = held;
  return sample;
}

}  // namespace gpuutil
