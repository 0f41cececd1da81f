#include "engine/sampling_plan.h"

#include <algorithm>
#include <cmath>

namespace gpuutil {

void SamplingPlan::add(const Step& step) {
  constexpr double kWeight = 0.1;
  if (step.sampled) {
    ++sampled_;
    const double events = step.events;
    events_ = sampled_ == 1 ? events : events_ + kWeight * (events - events_);
    cost_ns_ += events * kEventNs + kSwitchNs;
  } else if ((step.marks & kStepFirst) == 0) {
    const auto wall_ns = static_cast<double>(step.wall_ns());
    // Outliers and epoch turns would make the step look long and the observer cheap.
    if (step_ns_ == 0 || wall_ns < 5 * step_ns_) {
      step_ns_ = step_ns_ == 0 ? wall_ns : step_ns_ + kWeight * (wall_ns - step_ns_);
    }
  }
}

uint32_t SamplingPlan::every() const {
  if (startup_steps_ == 0) return 0;
  if (!started() || step_ns_ <= 0) return 1;
  const double cost_ns = events_ * kEventNs + kSwitchNs;
  const double ratio = sampled_ < kKnownSteps ? kTargetRatio : kKnownRatio;
  const double every = std::ceil(cost_ns / (ratio * step_ns_));
  return static_cast<uint32_t>(std::clamp(every, double{kLeastEvery}, double{kMostEvery}));
}

}  // namespace gpuutil
