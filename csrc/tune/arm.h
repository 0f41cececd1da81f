// Collects one block of one arm: seconds per unit of work, from steps or from whole epochs. Used by
// the trial, on the engine's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/step_sample.h"
#include "tune/trial_stats.h"

namespace gpuutil {

// One value from each run of `burst` consecutive countable steps; an uncountable step ends the run
// unused.
class StepArm {
 public:
  explicit StepArm(int burst) : burst_(burst) {}

  void add(const StepSample& sample);

  const std::vector<double>& values() const { return values_; }
  int steps() const { return static_cast<int>(values_.size()) * burst_; }
  double step_work() const { return work_; }  // per step, of the last run

 private:
  int burst_;
  int run_ = 0;
  double run_seconds_ = 0;
  double run_work_ = 0;
  double work_ = 1;
  std::vector<double> values_;
};

// One value for each epoch, from its first step to its last: whatever a change costs at an epoch
// turn is in it. Epochs that began before the first step seen, or in which a step was held or
// changed, are left out.
class EpochArm {
 public:
  void add(const StepSample& sample, bool usable);

  const std::vector<double>& values() const { return values_; }
  void clear_values() { values_.clear(); }  // the epoch under way goes on
  double step_work() const { return work_; }
  // Steps in the last whole epoch.
  std::optional<int> epoch_steps() const { return epoch_steps_; }

 private:
  std::optional<int64_t> epoch_;
  bool usable_ = false;  // the current epoch, as far as seen
  bool whole_ = false;   // it was seen from its first step on
  int steps_ = 0;
  double seconds_ = 0;
  double sum_work_ = 0;
  double work_ = 1;
  std::optional<int> epoch_steps_;
  std::vector<double> values_;
};

}  // namespace gpuutil
