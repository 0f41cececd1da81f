// Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically
// larger than the other", Ann. Math. Statist. 18 (1947): the recurrence for the exact distribution
// of U and its mean and variance. The variance under ties is that of Lehmann, "Nonparametrics"
// (1975), section 1.4.
#include "base/rank_test.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace gpuutil {

namespace {

constexpr size_t kExactLimit = 8;

struct Ranks {
  double sum_a = 0;     // of the ranks (from 1, ties share their mean) of the first sample
  double tie_term = 0;  // sum of t^3 - t over groups of t equal values
};

Ranks rank(std::span<const double> a, std::span<const double> b) {
  struct Entry {
    double value;
    bool from_a;
  };
  std::vector<Entry> entries;
  entries.reserve(a.size() + b.size());
  for (const double value : a) entries.push_back({value, true});
  for (const double value : b) entries.push_back({value, false});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& x, const Entry& y) { return x.value < y.value; });
  Ranks ranks;
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    size_t from_a = 0;
    while (end < entries.size() && entries[end].value == entries[begin].value) {
      from_a += entries[end++].from_a ? 1 : 0;
    }
    const auto tied = static_cast<double>(end - begin);
    ranks.sum_a += static_cast<double>(from_a) * static_cast<double>(begin + 1 + end) / 2;
    ranks.tie_term += tied * tied * tied - tied;
  }
  return ranks;
}

// P(U >= u) under the null hypothesis, for samples of m and n values without ties. Of the orderings
// of the two samples, those in which the greatest value comes from the first sample have n pairs
// more than the ordering without it: ways(m, n, u) = ways(m - 1, n, u - n) + ways(m, n - 1, u).
double exact_tail(size_t m, size_t n, size_t u) {
  using Ways = std::array<double, kExactLimit * kExactLimit + 1>;  // counts up to C(16, 8): exact
  std::array<Ways, kExactLimit + 1> row{};  // row[i]: ways by u for i values in the first sample
  for (size_t i = 0; i <= m; ++i) row[i][0] = 1;  // the second sample still empty
  for (size_t j = 1; j <= n; ++j) {
    for (size_t i = 1; i <= m; ++i) {
      for (size_t at = i * j; at >= j; --at) row[i][at] += row[i - 1][at - j];
    }
  }
  const Ways& ways = row[m];
  const auto end = ways.begin() + static_cast<std::ptrdiff_t>(m * n + 1);
  const auto from = ways.begin() + static_cast<std::ptrdiff_t>(u);
  return std::accumulate(from, end, 0.0) / std::accumulate(ways.begin(), end, 0.0);
}

// P(Z >= z) of the standard normal distribution.
double normal_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

}  // namespace

std::optional<RankTest> rank_test(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const auto m = static_cast<double>(a.size());
  const auto n = static_cast<double>(b.size());
  const Ranks ranks = rank(a, b);

  RankTest result;
  result.u = ranks.sum_a - m * (m + 1) / 2;
  const double extreme = std::max(result.u, m * n - result.u);
  if (a.size() <= kExactLimit && b.size() <= kExactLimit && ranks.tie_term == 0) {
    result.exact = true;
    result.p_greater = exact_tail(a.size(), b.size(), static_cast<size_t>(result.u));
    const double tail = exact_tail(a.size(), b.size(), static_cast<size_t>(extreme));
    result.p_two_sided = std::min(1.0, 2 * tail);
    return result;
  }
  const double total = m + n;
  const double variance = m * n / 12 * (total + 1 - ranks.tie_term / (total * (total - 1)));
  if (!(variance > 0)) return result;  // all values are equal
  const double sigma = std::sqrt(variance);
  const double mean = m * n / 2;
  // U moves in steps of one (of one half at ties): P(U >= u) is the normal tail from u - 1/2.
  result.p_greater = normal_tail((result.u - mean - 0.5) / sigma);
  result.p_two_sided = std::min(1.0, 2 * normal_tail((extreme - mean - 0.5) / sigma));
  return result;
}

}  // namespace gpuutil
