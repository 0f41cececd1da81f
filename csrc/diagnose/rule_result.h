// How a rule says what it saw. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/finding.h"

namespace gpuutil {

inline RuleResult found(Finding finding) {
  RuleResult result;
  result.verdict = Verdict::found;
  result.finding = std::move(finding);
  return result;
}

inline RuleResult clear() {
  RuleResult result;
  result.verdict = Verdict::clear;
  return result;
}

inline RuleResult not_measured(std::string reason) {
  RuleResult result;
  result.verdict = Verdict::not_measured;
  result.reason = std::move(reason);
  return result;
}

// A share of the step that is saved is never negative and never all of it.
inline GainRange gain_range(double low, double high) {
  constexpr double kMost = 0.999;
  GainRange range;
  range.high = std::clamp(high, 0.0, kMost);
  range.low = std::clamp(low, 0.0, range.high);
  return range;
}

// 0.5 where `count` just passes the floor, 1 from `full` on.
inline double evidence_weight(double count, double floor, double full) {
  if (full <= floor) return 1;
  return 0.5 + 0.5 * std::clamp((count - floor) / (full - floor), 0.0, 1.0);
}

}  // namespace gpuutil
