#include "report/time_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/wording.h"
#include "profile/epoch_budget.h"
#include "report/text.h"

namespace gpuutil {
namespace {

// For people; the ids stay in the JSON.
constexpr std::array<std::string_view, kPhaseCount> kLabels = {
    "input",      "copy",    "forward",    "backward", "optimizer", "device wait",
    "collective", "logging", "checkpoint", "eval",     "gpuutil",   "other"};

constexpr std::string_view kOther = "other";
constexpr std::string_view kUnsplit = "training";

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
    const std::string& label = parts[i].label;
    if (label == kOther || label == kUnsplit || label == kLabels[0]) continue;  // input stays
    if (!smallest || parts[i].ratio < parts[*smallest].ratio) smallest = i;
  }
  return smallest;
}

}  // namespace

bool phases_split(const PhaseTimes& budget) {
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (needs_observer(static_cast<Phase>(i)) && budget.ns[i] > 0) return true;
  }
  return false;
}

TimeShares time_shares(const EpochSummary& epoch) {
  TimeShares shares;
  const auto total = static_cast<double>(epoch.budget.total());
  if (!(total > 0)) return shares;

  shares.split = phases_split(epoch.budget);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double ratio = static_cast<double>(epoch.budget.ns[i]) / total;
    if (!(ratio > 0) && phase != Phase::input_wait) continue;
    const bool unsplit = phase == Phase::other && !shares.split;
    shares.parts.push_back({std::string(unsplit ? kUnsplit : kLabels[i]), ratio, 0});
  }
  round_to_hundred(shares.parts);
  return shares;
}

std::string time_line(const EpochSummary& epoch, size_t columns) {
  TimeShares shares = time_shares(epoch);
  if (shares.parts.empty()) return "time: not measured";
  // How much of the time the split was seen in, at length where there is room.
  std::string tail = "   (forward, backward, optimizer not told apart)";
  std::string short_tail = tail;
  if (shares.split) {
    const std::optional<double> coverage = epoch.profile.coverage_ratio;
    const std::string seen = coverage ? percent_text(*coverage) : std::string();
    tail = coverage ? fmt::format("   (phases seen in {} of the time)", seen) : std::string();
    short_tail = coverage ? fmt::format(" (sampled {})", seen) : std::string();
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
    if (line.size() + tail.size() <= columns) return line + tail;
    if (line.size() + short_tail.size() <= columns) return line + short_tail;
    const std::optional<size_t> smallest = smallest_named(shares.parts);
    if (!smallest) return fit_with_tail(line, short_tail, columns);
    merge_into_other(shares.parts, *smallest);
  }
}

}  // namespace gpuutil
