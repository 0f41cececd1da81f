// The Mann-Whitney (Wilcoxon rank sum) test: do values of one sample tend to be greater than those
// of another? Pure, any thread. It takes the values as independent; step times are autocorrelated,
// which makes its p too small, so a verdict also needs the block bootstrap (base/bootstrap.h).
#pragma once

#include <optional>
#include <span>

namespace gpuutil {

struct RankTest {
  double u = 0;  // pairs (a, b) with a > b, ties counted as one half; between 0 and |a| |b|
  double p_greater = 1;    // against "a does not tend to be greater than b"
  double p_two_sided = 1;  // against "neither tends to be greater"
  bool exact = false;      // from the exact distribution; else the normal approximation
};

// Exact up to 8 values each without ties; beyond that, the normal approximation with corrections
// for ties and continuity. Values must not be NaN. std::nullopt where a sample is empty.
std::optional<RankTest> rank_test(std::span<const double> a, std::span<const double> b);

}  // namespace gpuutil
