// Watches the change that was kept last: is the run still faster than it was before it? Only
// suspects, cheaply; a second trial confirms (a run may slow down for reasons of its own). Kept by
// the controller.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/arm.h"
#include "tune/policy.h"

namespace gpuutil {

enum class Suspicion : uint8_t { none, steps, epochs };

class Watch {
 public:
  // `before_seconds` a unit of work, without the change; `burst` as in its proposal.
  Watch(int64_t ledger_id, double before_seconds, int burst);

  Suspicion observe(const StepSample& sample, const Policy& policy);

  // A second trial found it good: `before_seconds` as measured now; look half as often.
  void reassured(double before_seconds);

  int64_t ledger_id() const { return ledger_id_; }
  int steps() const { return steps_; }

 private:
  int64_t ledger_id_;
  double before_seconds_;
  int burst_;
  int steps_ = 0;
  int patience_ = 1;  // slow windows in a row that make a suspicion; doubles
  int slow_windows_ = 0;
  int slow_epochs_ = 0;
  StepArm arm_;
  EpochArm epochs_;
};

}  // namespace gpuutil
