#include "tune/arm.h"

namespace gpuutil {

void StepArm::add(const StepSample& sample) {
  if (!sample.countable || sample.held) {
    run_ = 0;
    run_seconds_ = run_work_ = 0;
    return;
  }
  run_seconds_ += sample.seconds;
  run_work_ += sample.work;
  if (++run_ < burst_) return;
  values_.push_back(run_seconds_ / run_work_);
  work_ = run_work_ / burst_;
  run_ = 0;
  run_seconds_ = run_work_ = 0;
}

void EpochArm::add(const StepSample& sample, bool usable) {
  if (epoch_ != sample.epoch) {
    if (epoch_ && whole_) {
      epoch_steps_ = steps_;
      if (usable_ && sum_work_ > 0) {
        values_.push_back(seconds_ / sum_work_);
        work_ = sum_work_ / steps_;
      }
    }
    whole_ = epoch_.has_value();  // of the very first one seen the beginning is unknown
    epoch_ = sample.epoch;
    usable_ = true;
    steps_ = 0;
    seconds_ = sum_work_ = 0;
  }
  usable_ = usable_ && usable && !sample.held;
  ++steps_;
  seconds_ += sample.seconds - sample.aside_seconds;
  sum_work_ += sample.work;
}

}  // namespace gpuutil
