// What must be true before a trial may begin: nobody else takes our CPU, tuning has not cost too
// much yet, and the last searches did not come to nothing. Small state machines of the controller;
// times come in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "profile/features.h"
#include "tune/policy.h"

namespace gpuutil {

// Foreign CPU use above a limit, or moving by as much over the last looks. Unknown does not hold:
// the report says that it was not measured.
class ForeignLoad {
 public:
  void observe(const HostFeatures& host) {
    const std::optional<double> cores =
        host.crowding_cores ? host.crowding_cores : host.foreign_cores;
    if (!cores) return;
    looks_[next_++ % looks_.size()] = *cores;
  }
  std::optional<double> cores() const {
    if (next_ == 0) return std::nullopt;
    return looks_[(next_ - 1) % looks_.size()];
  }
  bool holds(const Policy& policy) const {
    if (next_ == 0) return false;
    const auto end = looks_.begin() + static_cast<std::ptrdiff_t>(std::min(next_, looks_.size()));
    const auto [low, high] = std::minmax_element(looks_.begin(), end);
    return *cores() > policy.hold_cores || *high - *low > policy.hold_cores;
  }

 private:
  std::array<double, 3> looks_{};
  size_t next_ = 0;
};

// Time lost to trials against always running the better arm.
class RegretBudget {
 public:
  void spend(double seconds) { spent_ += std::max(0.0, seconds); }
  double spent() const { return spent_; }
  double granted(double elapsed_seconds, const Policy& policy) const {
    return policy.regret_credit_seconds + policy.regret_ratio * elapsed_seconds;
  }
  double left(double elapsed_seconds, const Policy& policy) const {
    return granted(elapsed_seconds, policy) - spent_;
  }

 private:
  double spent_ = 0;
};

// After a search that has nothing more to try: sleep, twice as long each time, until the run moves.
class Backoff {
 public:
  bool asleep(int64_t now_ns) const { return until_ns_ && now_ns < *until_ns_; }
  bool dozing() const { return until_ns_.has_value(); }
  void sleep(int64_t now_ns, double step_seconds, double wait_seconds, const Policy& policy) {
    delay_ns_ = delay_ns_ == 0 ? policy.backoff_ns : std::min(delay_ns_ * 2, policy.max_backoff_ns);
    until_ns_ = now_ns + delay_ns_;
    step_seconds_ = step_seconds;
    wait_seconds_ = wait_seconds;
  }
  void wake() { until_ns_.reset(); }
  void rearm() {
    until_ns_.reset();
    delay_ns_ = 0;
  }
  // The step, or a wait for input that is worth something, differs by the factor from when it fell
  // asleep.
  bool moved(double step_seconds, double wait_seconds, const Policy& policy) const {
    if (!until_ns_) return false;
    const auto far = [&](double a, double b) {
      return std::max(a, b) > policy.rearm_factor * std::min(a, b);
    };
    const bool waits = std::max(wait_seconds, wait_seconds_) > kWorthwhileWait * step_seconds;
    return far(step_seconds, step_seconds_) || (waits && far(wait_seconds, wait_seconds_));
  }

 private:
  static constexpr double kWorthwhileWait = 0.05;

  std::optional<int64_t> until_ns_;
  int64_t delay_ns_ = 0;
  double step_seconds_ = 0;
  double wait_seconds_ = 0;
};

}  // namespace gpuutil
