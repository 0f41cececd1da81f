// Statistics that a few wild values do not move. Pure functions, any thread. Every one copies its
// input once, except the in-place forms. Values must not be NaN. An empty input has no answer:
// std::nullopt.
#pragma once

#include <optional>
#include <span>

namespace gpuutil {

// The middle value; the mean of the two middle ones where the count is even.
std::optional<double> median(std::span<const double> values);

// Quantile by linear interpolation between order statistics: with n sorted values x[0..n-1] and h =
// q (n - 1), x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h]). That is definition 7 of
// Hyndman and Fan (1996), NumPy's default; q = 0.5 is the median. std::nullopt for q outside [0,
// 1].
std::optional<double> quantile(std::span<const double> values, double q);

// As quantile(), without the copy: reorders `values`.
std::optional<double> quantile_in_place(std::span<double> values, double q);

enum class MadScale {
  raw,     // median of |x - median|
  normal,  // times 1.4826, which estimates the standard deviation where the values are normal
};
std::optional<double> mad(std::span<const double> values, MadScale scale = MadScale::raw);

// Mean of what is left after floor(trim_ratio * n) values are cut from each end. std::nullopt for a
// trim_ratio outside [0, 0.5); at least one value always remains.
std::optional<double> trimmed_mean(std::span<const double> values, double trim_ratio);

}  // namespace gpuutil
