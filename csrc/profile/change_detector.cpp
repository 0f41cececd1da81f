#include "profile/change_detector.h"

#include <algorithm>
#include <vector>

#include "base/robust.h"

namespace gpuutil {

void ChangeDetector::add(const Step& step) {
  if ((step.marks & ~uint32_t{kStepOutlier}) != 0) return;  // outliers in a row are a movement
  group_.push_back(
      {static_cast<double>(step.wall_ns()), static_cast<double>(step.phases[Phase::input_wait])});
  if (!record_ && group_.size() >= kGroup) {
    record_ = middle(group_);
    group_.clear();
  }
  if (group_.size() > kGroup) group_.pop_front();
}

ChangeDetector::Times ChangeDetector::middle(const std::deque<Times>& group) {
  std::vector<double> walls, waits;
  for (const Times& t : group) {
    walls.push_back(t.wall_ns);
    waits.push_back(t.wait_ns);
  }
  return {median(walls).value_or(0), median(waits).value_or(0)};
}

std::optional<Movement> ChangeDetector::moved() const {
  if (!record_ || group_.size() < kGroup) return std::nullopt;
  const Times now = middle(group_);
  const auto factor = [](double a, double b) { return b > 0 ? a / b : 1.0; };
  const double step = factor(now.wall_ns, record_->wall_ns);
  if (step >= kFactor || step <= 1 / kFactor) return Movement{false, step};
  // Waits are lifted to the least that matters, so that 1 us against 3 us is no movement.
  const double floor_ns = kLeastShare * record_->wall_ns;
  const double wait = factor(std::max(now.wait_ns, floor_ns), std::max(record_->wait_ns, floor_ns));
  if (wait >= kFactor || wait <= 1 / kFactor) return Movement{true, wait};
  return std::nullopt;
}

void ChangeDetector::rearm() {
  record_.reset();
  group_.clear();
}

}  // namespace gpuutil
