#include "report/time_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/wording.h"
#include "report/text.h"

namespace gpuutil {
namespace {

// For people; the ids stay in the JSON.
constexpr std::array<std::string_view, kPhaseCount> kLabels = {
    "input wait", "copy",    "forward",    "backward",   "optimizer", "device wait",
    "collective", "logging", "checkpoint", "evaluation", "gpuutil",   "other"};

constexpr std::string_view kOther = "other";
constexpr std::string_view kUnsplit = "training";

// Told apart in sampled steps only; elsewhere they are all in `other`.
constexpr bool needs_sampling(Phase phase) {
  switch (phase) {
    case Phase::host_to_device:
    case Phase::forward:
    case Phase::backward:
    case Phase::optimizer:
    case Phase::sync_wait:
    case Phase::collective_wait:
    case Phase::other:
      return true;
    default:
      return false;
  }
}

// Largest remainders: what is left of 100 after rounding down goes to the parts that lost most.
void round_to_hundred(std::vector<TimeShare>& parts) {
  int left = 100;
  for (TimeShare& part : parts) {
    part.percent = static_cast<int>(std::floor(part.ratio * 100));
    left -= part.percent;
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return parts[a].ratio * 100 - parts[a].percent > parts[b].ratio * 100 - parts[b].percent;
  });
  for (size_t i = 0; i < order.size() && left > 0; ++i, --left) ++parts[order[i]].percent;
}

// Removes the part and adds it to "other", which is made where there is none.
void merge_into_other(std::vector<TimeShare>& parts, size_t index) {
  const double ratio = parts[index].ratio;
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(index));
  const auto other = std::find_if(parts.begin(), parts.end(),
                                  [](const TimeShare& p) { return p.label == kOther; });
  if (other != parts.end()) {
    other->ratio += ratio;
  } else {
    parts.push_back({std::string(kOther), ratio, 0});
  }
}

std::optional<size_t> smallest_named(const std::vector<TimeShare>& parts) {
  std::optional<size_t> smallest;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].label == kOther || parts[i].label == kUnsplit) continue;
    if (!smallest || parts[i].ratio < parts[*smallest].ratio) smallest = i;
  }
  return smallest;
}

}  // namespace

TimeShares time_shares(const EpochSummary& epoch) {
  TimeShares shares;
  const auto total = static_cast<double>(epoch.budget.total());
  if (!(total > 0)) return shares;

  double sampled_sum = 0;  // what the profile saw of the phases that need sampling
  double unsplit = 0;      // what the epoch spent in all of them together
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (!needs_sampling(static_cast<Phase>(i))) continue;
    sampled_sum += std::max(0.0, epoch.profile.phase_ratio[i].value_or(0));
    unsplit += static_cast<double>(epoch.budget.ns[i]) / total;
  }
  const auto seen = [&](Phase phase) {
    return epoch.profile.phase_ratio[static_cast<size_t>(phase)].has_value();
  };
  shares.split =
      sampled_sum > 0 && (seen(Phase::forward) || seen(Phase::backward) || seen(Phase::optimizer));

  for (size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    double ratio = static_cast<double>(epoch.budget.ns[i]) / total;
    if (needs_sampling(phase)) {
      if (!shares.split) continue;
      ratio = unsplit * std::max(0.0, epoch.profile.phase_ratio[i].value_or(0)) / sampled_sum;
    }
    if (ratio > 0 || phase == Phase::input_wait)
      shares.parts.push_back({std::string(kLabels[i]), ratio, 0});
  }
  if (!shares.split && unsplit > 0) shares.parts.push_back({std::string(kUnsplit), unsplit, 0});
  round_to_hundred(shares.parts);
  return shares;
}

std::string time_line(const EpochSummary& epoch, size_t columns) {
  TimeShares shares = time_shares(epoch);
  if (shares.parts.empty()) return "time: not measured";
  std::string tail;
  if (!shares.split) {
    tail = "   (forward, backward, optimizer not told apart)";
  } else if (epoch.profile.coverage_ratio) {
    tail = fmt::format("   (phases seen in {} of the time)",
                       percent_text(*epoch.profile.coverage_ratio));
  }
  // Parts under half a percent say nothing; input stays, because its zero is an answer.
  for (size_t i = shares.parts.size(); i-- > 0;) {
    const TimeShare& part = shares.parts[i];
    if (part.ratio < 0.005 && part.label != kOther && part.label != kLabels[0])
      merge_into_other(shares.parts, i);
  }
  while (true) {
    round_to_hundred(shares.parts);
    std::string line;
    for (const TimeShare& part : shares.parts) {
      if (part.label == kOther && part.percent == 0) continue;
      line += fmt::format("{}{} {} %", line.empty() ? "time: " : " | ", part.label, part.percent);
    }
    const std::optional<size_t> smallest = smallest_named(shares.parts);
    if (line.size() + tail.size() <= columns || !smallest)
      return fit_with_tail(line, tail, columns);
    merge_into_other(shares.parts, *smallest);
  }
}

}  // namespace gpuutil
