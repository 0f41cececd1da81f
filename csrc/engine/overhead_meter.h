// gpuutil's own cost on the training thread, for every report (DESIGN 5, 6): the always-on hooks at the cost measured at
// attach, sampled steps by their events, and our Python code by the clock. Engine thread, under its mutex.
#pragma once

#include <cstdint>

#include "report/summary.h"
#include "timeline/step.h"

namespace gpuutil {

class OverheadMeter {
 public:
  // ns that one fetch and one optimizer end cost with the hooks in; measured once at attach.
  void set_hook_cost(double ns) { hook_ns_ = ns; }
  void add_own_time(int64_t ns) { own_ns_ += ns; }
  void add_step(const Step& step, double sampled_ns) {
    ++steps_;
    wall_ns_ += step.wall_ns();
    hooks_ns_ += hook_ns_ * static_cast<double>(step.micro_steps == 0 ? 1 : step.micro_steps);
    sampled_ns_ += sampled_ns;
  }
  // Since construction or the last call of mark(); threads: how many of ours exist.
  Overhead since_mark(int32_t threads) const { return make(*this, mark_, threads); }
  Overhead whole(int32_t threads) const { return make(*this, Totals{}, threads); }
  void mark() { mark_ = {steps_, wall_ns_, hooks_ns_, sampled_ns_, own_ns_}; }

 private:
  struct Totals {
    int64_t steps = 0;
    int64_t wall_ns = 0;
    double hooks_ns = 0;
    double sampled_ns = 0;
    int64_t own_ns = 0;
  };
  static Overhead make(const OverheadMeter& meter, const Totals& from, int32_t threads) {
    Overhead overhead;
    overhead.threads = threads;
    const int64_t steps = meter.steps_ - from.steps;
    if (steps == 0) return overhead;
    const double ns = meter.hooks_ns_ - from.hooks_ns + meter.sampled_ns_ - from.sampled_ns +
                      static_cast<double>(meter.own_ns_ - from.own_ns);
    overhead.microseconds_per_step = ns / static_cast<double>(steps) / 1e3;
    if (meter.wall_ns_ > from.wall_ns) {
      overhead.ratio = ns / static_cast<double>(meter.wall_ns_ - from.wall_ns);
    }
    return overhead;
  }

  double hook_ns_ = 0;
  int64_t steps_ = 0;
  int64_t wall_ns_ = 0;
  double hooks_ns_ = 0;
  double sampled_ns_ = 0;
  int64_t own_ns_ = 0;
  Totals mark_;
};

}  // namespace gpuutil
