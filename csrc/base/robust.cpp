#include "base/robust.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace gpuutil {

namespace {

// 1 / (the 0.75 quantile of the standard normal distribution).
constexpr double kNormalMad = 1.482602218505602;

}  // namespace

std::optional<double> quantile_in_place(std::span<double> values, double q) {
  if (values.empty() || !(q >= 0 && q <= 1)) return std::nullopt;
  const double position = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(position);  // position >= 0: truncation is floor
  const double fraction = position - static_cast<double>(low);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), at, values.end());
  if (fraction == 0) return *at;
  // nth_element left everything not smaller behind `at`; fraction > 0 implies that something is
  // there.
  return std::lerp(*at, *std::min_element(at + 1, values.end()), fraction);
}

std::optional<double> quantile(std::span<const double> values, double q) {
  std::vector<double> copy(values.begin(), values.end());
  return quantile_in_place(copy, q);
}

std::optional<double> median(std::span<const double> values) { return quantile(values, 0.5); }

std::optional<double> mad(std::span<const double> values, MadScale scale) {
  std::vector<double> copy(values.begin(), values.end());
  const std::optional<double> centre = quantile_in_place(copy, 0.5);
  if (!centre) return std::nullopt;
  for (double& value : copy) value = std::abs(value - *centre);
  const double deviation = *quantile_in_place(copy, 0.5);
  return scale == MadScale::normal ? kNormalMad * deviation : deviation;
}

std::optional<double> trimmed_mean(std::span<const double> values, double trim_ratio) {
  if (values.empty() || !(trim_ratio >= 0 && trim_ratio < 0.5)) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto cut = static_cast<size_t>(trim_ratio * static_cast<double>(sorted.size()));
  const std::span<const double> kept(sorted.data() + cut, sorted.size() - 2 * cut);
  return std::accumulate(kept.begin(), kept.end(), 0.0) / static_cast<double>(kept.size());
}

}  // namespace gpuutil
