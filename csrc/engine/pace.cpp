#include "engine/pace.h"

#include <algorithm>

#include "record/recorder.h"

namespace gpuutil {

void Pace::turned(size_t events, int64_t interval_ns, bool calm, bool watches_workers) {
  calm_ = calm;
  fold_now_ns_ = fold_period_ns_;
  if (!calm) return;
  int64_t longest_ns = fold_period_ns_ * (watches_workers ? kCalmWatch : kCalmFolds);
  if (events > 0 && interval_ns > 0) {
    // As if all of it came from one thread.
    const double fill = static_cast<double>(events) / static_cast<double>(interval_ns);
    const double full_ns = kMostFill * static_cast<double>(Recorder::kCapacity) / fill;
    longest_ns = static_cast<int64_t>(std::min(static_cast<double>(longest_ns), full_ns));
  }
  fold_now_ns_ = std::max(fold_period_ns_, longest_ns);
}

}  // namespace gpuutil
