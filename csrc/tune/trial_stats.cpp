#include "tune/trial_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/rank_test.h"
#include "base/robust.h"

namespace gpuutil {

namespace {

// Above this the rank test does not back a verdict, whatever the interval says.
constexpr double kRankLimit = 0.025;

// A contrast so many robust standard deviations from the others spans a jump of the run itself
// (another sequence length, another neighbour), and says nothing of the change. At most a quarter
// of them may go.
constexpr double kJump = 5;
constexpr size_t kJumpShare = 4;
constexpr size_t kFewContrasts = 5;

// Cut from each end of a block before its mean is taken: spikes do not reach it, and it scatters
// less than the median does.
constexpr double kTrim = 0.25;

// Of the interval that is reported and compared with the policy's bounds.
constexpr double kConfidence = 0.9;
// Of a gain being there at all. On a quiet run the bounds decide; where the noise is many times the
// gain that they ask for, and four looks are taken, this does.
constexpr double kCertain = 0.99;

// Two-sided points of Student's t for 1, 2, ... degrees of freedom.
constexpr std::array<double, 20> kStudent90 = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895,
                                               1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
                                               1.753, 1.746, 1.740, 1.734, 1.729, 1.725};
constexpr std::array<double, 20> kStudent99 = {63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499,
                                               3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977,
                                               2.947, 2.921, 2.898, 2.878, 2.861, 2.845};

double student(std::span<const double> table, size_t degrees) {
  return table[std::min(degrees, table.size()) - 1];
}

double log_level(const Block& block) { return std::log(*trimmed_mean(block.values, kTrim)); }

struct Contrast {
  double mean = 0;
  std::optional<double> half_width;  // empty where one contrast cannot tell its own scatter
  double certain_half_width = 0;
};

void drop_jumps(std::vector<double>& differences) {
  if (differences.size() < kFewContrasts) return;
  const double centre = *median(differences);
  const double limit = kJump * *mad(differences, MadScale::normal);
  for (size_t left = differences.size() / kJumpShare; left > 0; --left) {
    const auto far = std::max_element(
        differences.begin(), differences.end(),
        [&](double x, double y) { return std::abs(x - centre) < std::abs(y - centre); });
    if (std::abs(*far - centre) <= limit) return;
    differences.erase(far);
  }
}

// log(before) - log(after), each block against its two neighbours.
Contrast contrast(std::span<const Block> blocks, std::span<const double> levels) {
  std::vector<double> differences;
  for (size_t i = 1; i + 1 < levels.size(); ++i) {
    const double difference = levels[i] - (levels[i - 1] + levels[i + 1]) / 2;
    differences.push_back(blocks[i].after ? -difference : difference);
  }
  drop_jumps(differences);
  const auto n = static_cast<double>(differences.size());
  Contrast result;
  result.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  if (differences.size() < 2) return result;
  double squares = 0;
  for (const double difference : differences) {
    squares += (difference - result.mean) * (difference - result.mean);
  }
  // Neighbouring contrasts share blocks. In units of the variance of a block's level, taken as
  // independent (slow noise makes both smaller): the variance of their mean, and the expectation of
  // `squares`.
  const double of_mean = (4 * n - 3) / (n * n);
  const double expected = 1.5 * n - n * of_mean;
  const double error = std::sqrt(squares / expected * of_mean);
  result.half_width = student(kStudent90, differences.size() - 1) * error;
  result.certain_half_width = student(kStudent99, differences.size() - 1) * error;
  return result;
}

// Takes the slow course of the run out of the values: each block is divided by the smoothed level
// around it, where levels of the arm with the change are first brought to those without it.
std::vector<double> course(std::span<const Block> blocks, std::span<const double> levels,
                           double effect) {
  std::vector<double> equal(levels.begin(), levels.end());
  for (size_t i = 0; i < equal.size(); ++i) equal[i] += blocks[i].after ? effect : 0;
  std::vector<double> smooth(equal);
  for (size_t i = 1; i + 1 < equal.size(); ++i) {
    smooth[i] = (equal[i - 1] + 2 * equal[i] + equal[i + 1]) / 4;
  }
  return smooth;
}

Interval range(std::span<const double> before, std::span<const double> after) {
  const auto [before_low, before_high] = std::minmax_element(before.begin(), before.end());
  const auto [after_low, after_high] = std::minmax_element(after.begin(), after.end());
  return {*before_low / *after_high, *median(before) / *median(after), *before_high / *after_low};
}

}  // namespace

std::optional<Comparison> compare(std::span<const Block> blocks, uint64_t seed) {
  std::vector<double> levels;
  for (const Block& block : blocks) {
    if (block.values.empty()) return std::nullopt;
    levels.push_back(log_level(block));
  }
  const bool alternating = blocks.size() >= 3;
  const Contrast between = alternating ? contrast(blocks, levels) : Contrast{};
  const std::vector<double> level =
      alternating ? course(blocks, levels, between.mean) : std::vector<double>(blocks.size(), 0.0);

  std::vector<double> before, after, raw_before, raw_after;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const double value : blocks[i].values) {
      (blocks[i].after ? after : before).push_back(value / std::exp(level[i]));
      (blocks[i].after ? raw_after : raw_before).push_back(value);
    }
  }
  const std::optional<RankTest> ranks = rank_test(before, after);
  if (!ranks) return std::nullopt;
  const auto bootstrap = [&](double confidence) {
    return median_ratio_interval(before, after,
                                 BootstrapOptions{.confidence = confidence, .seed = seed})
        .value_or(range(before, after));
  };
  const Interval inside = bootstrap(kConfidence);

  Comparison result;
  result.speedup = inside;
  result.certain_low = bootstrap(kCertain).low;
  if (alternating) {
    const double mid = std::exp(between.mean);
    const double wide = between.half_width.value_or(0);
    result.speedup.mid = mid;
    result.speedup.low = std::min({mid, inside.low, mid * std::exp(-wide)});
    result.speedup.high = std::max({mid, inside.high, mid * std::exp(wide)});
    result.certain_low =
        std::min({mid, result.certain_low, mid * std::exp(-between.certain_half_width)});
  }
  result.p_faster = ranks->p_greater;
  result.disjoint = all_below(raw_after, raw_before);
  result.before_seconds = *median(raw_before);
  result.after_seconds = *median(raw_after);
  return result;
}

Decision decide(const Comparison& comparison, const Policy& policy, bool saving) {
  const Interval& speedup = comparison.speedup;
  if (saving) {
    if (speedup.low > 1 - policy.saving_loss) return Decision::keep;
    return speedup.high < 1 - policy.saving_loss ? Decision::undo : Decision::extend;
  }
  const bool ranked = comparison.p_faster < kRankLimit || comparison.disjoint;
  const bool certain = comparison.certain_low > 1;
  if (speedup.low > 1 + policy.keep_gain && certain && ranked) return Decision::keep;
  return speedup.high < 1 + policy.undo_gain ? Decision::undo : Decision::extend;
}

bool all_below(std::span<const double> after, std::span<const double> before) {
  if (after.empty() || before.empty()) return false;
  return *std::max_element(after.begin(), after.end()) <
         *std::min_element(before.begin(), before.end());
}

}  // namespace gpuutil
