// The last comparable steps under the present settings: what a step takes now, whether its input is
// late, and the baseline of the next trial. Kept by the controller.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "tune/step_sample.h"

namespace gpuutil {

// Per step, medians over runs of `burst` steps.
struct StepTimes {
  double step_seconds = 0;
  double wait_seconds = 0;  // of it waiting for input
  double spread_ratio = 1;  // p95 over median
  int steps = 0;
};

class Recent {
 public:
  explicit Recent(size_t capacity = 96) : capacity_(capacity) {}

  void add(const StepSample& sample);
  void clear() { samples_.clear(); }  // the settings changed
  size_t size() const { return samples_.size(); }
  const std::deque<StepSample>& samples() const { return samples_; }

  // std::nullopt with fewer than `least` steps or less than two runs.
  std::optional<StepTimes> times(int burst, size_t least) const;

 private:
  size_t capacity_;
  std::deque<StepSample> samples_;
};

}  // namespace gpuutil
