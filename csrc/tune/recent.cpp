#include "tune/recent.h"

#include <algorithm>
#include <vector>

#include "base/robust.h"

namespace gpuutil {

void Recent::add(const StepSample& sample) {
  if (!sample.countable || sample.held) return;
  samples_.push_back(sample);
  if (samples_.size() > capacity_) samples_.pop_front();
}

std::optional<StepTimes> Recent::times(int burst, size_t least) const {
  const auto run = static_cast<size_t>(std::max(1, burst));
  const size_t runs = samples_.size() / run;
  if (samples_.size() < least || runs < 2) return std::nullopt;
  std::vector<double> steps, waits;
  // The newest whole runs.
  for (size_t i = samples_.size() - runs * run; i < samples_.size(); i += run) {
    double seconds = 0, wait = 0;
    for (size_t j = i; j < i + run; ++j) {
      seconds += samples_[j].seconds;
      wait += samples_[j].wait_seconds;
    }
    steps.push_back(seconds / static_cast<double>(run));
    waits.push_back(wait / static_cast<double>(run));
  }
  StepTimes times;
  times.step_seconds = *median(steps);
  times.wait_seconds = std::min(*median(waits), times.step_seconds);
  times.spread_ratio = *quantile(steps, 0.95) / times.step_seconds;
  times.steps = static_cast<int>(samples_.size());
  return times;
}

}  // namespace gpuutil
