#include "base/rank_test.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace gpuutil {
namespace {

using doctest::Approx;
using Values = std::vector<double>;

RankTest test(const Values& a, const Values& b) { return rank_test(a, b).value(); }

TEST_CASE("an empty sample has no rank test") {
  CHECK_FALSE(rank_test(Values{}, Values{1}));
  CHECK_FALSE(rank_test(Values{1}, Values{}));
}

TEST_CASE("small samples without ties get the exact probabilities") {
  // Expected values: scipy.stats.mannwhitneyu(method="exact").
  const RankTest mixed = test({1.1, 2.3, 3.8, 9.0}, {0.4, 1.9, 2.2, 2.9, 3.1});
  CHECK(mixed.exact);
  CHECK(mixed.u == 14);
  CHECK(mixed.p_greater == Approx(0.20634920634920634));
  CHECK(mixed.p_two_sided == Approx(0.4126984126984127));
  const RankTest uneven = test({2.5, 4.5}, {1, 2, 3});
  CHECK(uneven.u == 5);
  CHECK(uneven.p_greater == Approx(0.2));
  CHECK(uneven.p_two_sided == Approx(0.4));
  const RankTest single = test({5}, {3});
  CHECK(single.p_greater == Approx(0.5));
  CHECK(single.p_two_sided == Approx(1));
}

TEST_CASE("eight disjoint against eight: one ordering of 12870") {
  const RankTest result = test({9, 10, 11, 12, 13, 14, 15, 16}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(result.exact);
  CHECK(result.u == 64);
  CHECK(result.p_greater == Approx(1 / 12870.0));
  CHECK(result.p_two_sided == Approx(2 / 12870.0));
}

TEST_CASE("the exact probabilities equal a count over all orderings") {
  Values values{1, 2, 3, 4, 5, 6, 7};
  std::vector<bool> in_a{false, false, false, false, true, true, true};
  std::vector<double> seen_u;
  do {
    Values a;
    Values b;
    for (size_t i = 0; i < values.size(); ++i) (in_a[i] ? a : b).push_back(values[i]);
    seen_u.push_back(test(a, b).u);
  } while (std::next_permutation(in_a.begin(), in_a.end()));
  CHECK(seen_u.size() == 35);
  const RankTest some = test({2, 6, 7}, {1, 3, 4, 5});
  const auto as_extreme = std::count_if(seen_u.begin(), seen_u.end(),
                                        [&](double u) { return u >= some.u; });
  CHECK(some.p_greater == Approx(static_cast<double>(as_extreme) / 35));
}

TEST_CASE("ties and larger samples get the corrected normal approximation") {
  // Expected values: scipy.stats.mannwhitneyu(method="asymptotic").
  const RankTest tied = test({1, 2, 2, 3, 3, 3, 4}, {2, 2, 3, 4, 5, 5});
  CHECK_FALSE(tied.exact);
  CHECK(tied.u == 13);
  CHECK(tied.p_greater == Approx(0.8948485574171572));
  CHECK(tied.p_two_sided == Approx(0.26900680647255915));
  const RankTest larger = test({19, 22, 16, 29, 24, 31, 18, 20, 27, 25},
                               {20.5, 11, 17, 12, 14, 13, 15, 23, 21, 10});
  CHECK(larger.u == 86);
  CHECK(larger.p_greater == Approx(0.00364227850473983));
  CHECK(larger.p_two_sided == Approx(0.00728455700947966));
  const RankTest nine = test({1, 2, 3, 4, 5, 6, 7, 8, 9},
                             {1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5});
  CHECK_FALSE(nine.exact);
  CHECK(nine.p_greater == Approx(0.6705783725253597));
  CHECK(nine.p_two_sided == Approx(0.7239320396139757));
}

TEST_CASE("equal values prove nothing") {
  const RankTest result = test({1, 1, 1}, {1, 1, 1});
  CHECK(result.u == 4.5);
  CHECK(result.p_greater == 1);
  CHECK(result.p_two_sided == 1);
}

TEST_CASE("exchanging the samples mirrors U and keeps the two-sided probability") {
  Random random(23);
  for (int round = 0; round < 50; ++round) {
    Values a(1 + random.below(20));
    Values b(1 + random.below(20));
    for (Values* sample : {&a, &b}) {
      for (double& value : *sample) value = static_cast<double>(random.below(30));
    }
    const RankTest forth = test(a, b);
    const RankTest back = test(b, a);
    CHECK(forth.u + back.u == Approx(static_cast<double>(a.size() * b.size())));
    CHECK(forth.p_two_sided == Approx(back.p_two_sided));
    CHECK(forth.p_greater + back.p_greater >= 1 - 1e-12);  // both count the observed value itself
  }
}

TEST_CASE("without a difference, small probabilities are as rare as they claim") {
  Random random(31);
  int below = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    Values a(15);
    Values b(25);
    for (Values* sample : {&a, &b}) {
      for (double& value : *sample) value = random.unit();
    }
    below += test(a, b).p_greater < 0.05 ? 1 : 0;
  }
  CHECK(below > kRounds * 0.035);
  CHECK(below < kRounds * 0.065);
}

}  // namespace
}  // namespace gpuutil
