// How often the engine's thread wakes and looks at the host. At its base pace while something is measured or decided;
// slower in a run that is known and left alone, where all it could do is spend the user's CPU. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuutil {

class Pace {
 public:
  static constexpr int kCalmFolds = 4;     // times the base period
  static constexpr int kCalmWatch = 2;     // the same, where workers' states are looked at on each turn
  static constexpr int kCalmHost = 2;
  static constexpr double kMostFill = 0.25;  // of a recorder between two turns

  Pace(int64_t fold_period_ns, int64_t host_period_ns)
      : fold_period_ns_(fold_period_ns), host_period_ns_(host_period_ns) {}

  // After each turn: how many events it found in how much time.
  void turned(size_t events, int64_t interval_ns, bool calm, bool watches_workers);

  int64_t fold_period_ns() const { return fold_now_ns_ == 0 ? fold_period_ns_ : fold_now_ns_; }
  int64_t host_period_ns() const { return calm_ ? kCalmHost * host_period_ns_ : host_period_ns_; }

 private:
  int64_t fold_period_ns_;
  int64_t host_period_ns_;
  int64_t fold_now_ns_ = 0;
  bool calm_ = false;
};

}  // namespace gpuutil
