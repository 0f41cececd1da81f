// Which steps the operator observer looks into (DESIGN 6, tier H2): a run of steps at the start, then one in N, with
// N from the measured cost of observing. Engine thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "timeline/step.h"

namespace gpuutil {

class SamplingPlan {
 public:
  static constexpr double kTargetRatio = 0.002;    // of the time of training
  static constexpr double kKnownRatio = 0.0005;    // the same, once the steps are well known
  static constexpr int64_t kKnownSteps = 64;       // sampled: from then on they are
  static constexpr double kEventNs = 700;          // 450 to 800 measured, an event, start and end
  static constexpr double kSwitchNs = 4'000;       // adding, removing, and the cold step in between
  static constexpr uint32_t kLeastEvery = 20;
  static constexpr uint32_t kMostEvery = 1'000;

  explicit SamplingPlan(int32_t startup_steps) : startup_steps_(startup_steps) {}

  void add(const Step& step);
  // One step in this many; 1 while the start lasts, 0 where nothing is ever sampled.
  uint32_t every() const;
  // The first look is over: from here on single steps are sampled.
  bool started() const { return startup_steps_ == 0 || sampled_ >= startup_steps_; }
  // Of the steps sampled so far.
  double sampled_cost_ns() const { return cost_ns_; }
  int64_t sampled_steps() const { return sampled_; }

 private:
  int32_t startup_steps_;
  int64_t sampled_ = 0;
  double cost_ns_ = 0;         // all of them
  double events_ = 0;          // per sampled step, running mean
  double step_ns_ = 0;         // per unsampled step, running mean
};

}  // namespace gpuutil
