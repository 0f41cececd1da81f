#include "tune/watch.h"

#include <algorithm>

#include "base/robust.h"

namespace gpuutil {

namespace {

constexpr int kWindowSteps = 40;       // during the first policy.watch_steps
constexpr int kLifeWindowSteps = 100;  // from then on
constexpr int kSlowWindows = 2;        // in a row
constexpr int kSlowEpochs = 2;
constexpr int kMaxPatience = 64;

}  // namespace

Watch::Watch(int64_t ledger_id, double before_seconds, int burst)
    : ledger_id_(ledger_id),
      before_seconds_(before_seconds),
      burst_(std::max(1, burst)),
      arm_(burst_) {}

Suspicion Watch::observe(const StepSample& sample, const Policy& policy) {
  ++steps_;
  const double limit = before_seconds_ * (1 + policy.keep_gain);
  // Whole epochs against single steps without the change: slower even so, then it costs more at
  // epoch turns than it gains between them.
  epochs_.add(sample, true);
  if (!epochs_.values().empty()) {
    slow_epochs_ = epochs_.values().back() > limit ? slow_epochs_ + 1 : 0;
    epochs_.clear_values();
    if (slow_epochs_ >= kSlowEpochs * patience_) {
      slow_epochs_ = 0;
      return Suspicion::epochs;
    }
  }
  arm_.add(sample);
  const int window = steps_ <= policy.watch_steps ? kWindowSteps : kLifeWindowSteps;
  if (arm_.steps() < window) return Suspicion::none;
  slow_windows_ = *median(arm_.values()) > limit ? slow_windows_ + 1 : 0;
  arm_ = StepArm(burst_);
  if (slow_windows_ < kSlowWindows * patience_) return Suspicion::none;
  slow_windows_ = 0;
  return Suspicion::steps;
}

void Watch::reassured(double before_seconds) {
  before_seconds_ = before_seconds;
  patience_ = std::min(patience_ * 2, kMaxPatience);
  slow_windows_ = slow_epochs_ = 0;
}

}  // namespace gpuutil
