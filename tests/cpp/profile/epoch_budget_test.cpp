#include "profile/epoch_budget.h"

#include <doctest/doctest.h>

#include <random>

#include "profile/share.h"
#include "steps.h"

using namespace gpuutil;
using namespace gpuutil::test;

namespace {

EpochTurn turn_of(int64_t wall_ns, int64_t tail_ns = 0) {
  EpochTurn turn;
  turn.end_ns = wall_ns;
  turn.tail[Phase::input_wait] = tail_ns;
  return turn;
}

}  // namespace

TEST_CASE("shares sum to the amount and stay within one of their exact value") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> weights(1 + random() % 7);
    int64_t total = 0;
    for (int64_t& w : weights)
      total += w = static_cast<int64_t>(random() % 5 == 0 ? 0 : random() % (1ull << 50));
    const auto amount = static_cast<int64_t>(random() % (1ull << 60));
    const std::vector<int64_t> parts = share_out(amount, weights);
    int64_t sum = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      sum += parts[i];
      REQUIRE(parts[i] >= 0);
      if (total > 0 && weights[i] == 0) REQUIRE(parts[i] <= 1);
    }
    REQUIRE(sum == amount);
  }
  const std::vector<int64_t> thirds = {1, 1, 1}, nothing = {0, 0};
  CHECK(share_out(10, thirds) == std::vector<int64_t>{4, 3, 3});
  CHECK(share_out(10, nothing) == std::vector<int64_t>{0, 10});
}

TEST_CASE(
    "unsampled time is divided as in the sampled steps, and everything sums to the wall time") {
  EpochBudget budget;
  int64_t wall_ns = 0;
  for (int i = 0; i < 10; ++i) {
    const Step step = i == 4 ? sampled_step(i) : unsampled_step(i);
    wall_ns += step.wall_ns();
    budget.add(step);
  }
  const EpochAccount account = budget.close(turn_of(wall_ns + 3 * kMs, 3 * kMs));
  CHECK(account.phases.total() == account.turn.wall_ns());
  CHECK(account.split_known);
  CHECK(account.sampled_steps == 1);
  CHECK(account.phases[Phase::input_wait] == 803 * kMs);
  CHECK(account.phases[Phase::forward] == 9 * 8 * kMs + 16 * kMs);
  CHECK(account.phases[Phase::backward] == 9 * 16 * kMs + 32 * kMs);
  CHECK(account.phases[Phase::optimizer] == 9 * 4 * kMs + 8 * kMs);
  CHECK(account.coverage_ratio == doctest::Approx(150.0 / (9 * 115 + 150 + 3)));
  CHECK(account.phase_ns(Phase::forward) == account.phases[Phase::forward]);
}

TEST_CASE("where nothing was ever sampled forward, backward and optimizer are unknown, not zero") {
  EpochBudget budget;
  budget.add(unsampled_step(0));
  const EpochAccount account = budget.close(turn_of(115 * kMs));
  CHECK_FALSE(account.split_known);
  CHECK_FALSE(account.phase_ns(Phase::forward).has_value());
  CHECK_FALSE(account.phase_ns(Phase::other).has_value());
  CHECK(account.phase_ns(Phase::input_wait) == 80 * kMs);
  CHECK(account.phases.total() == 115 * kMs);
}

TEST_CASE("an epoch without a sampled step takes the latest proportions") {
  EpochBudget budget;
  budget.add(sampled_step(0));
  budget.close(turn_of(150 * kMs));
  budget.add(unsampled_step(1));
  const EpochAccount account = budget.close(turn_of(115 * kMs));
  CHECK(account.split_known);
  CHECK(account.coverage_ratio == 0);
  CHECK(account.phases[Phase::backward] == 16 * kMs);
}

TEST_CASE("what an outlier has beyond one step's work stays other") {
  EpochBudget budget;
  budget.add(sampled_step(0));
  for (int i = 1; i < 5; ++i) budget.add(unsampled_step(i));
  Step stall = unsampled_step(5, 80 * kMs, 1035 * kMs);
  stall.marks = kStepOutlier;
  budget.add(stall);
  const EpochAccount account = budget.close(turn_of((150 + 4 * 115 + 1115) * kMs));
  CHECK(account.phases.total() == account.turn.wall_ns());
  CHECK(account.phases[Phase::backward] == (32 + 5 * 16) * kMs);
  CHECK(account.phases[Phase::other] == (14 + 5 * 7 + 1000) * kMs);
}

TEST_CASE(
    "the part of a step that lies before the turn is the old epoch's tail and not counted again") {
  EpochBudget budget;
  Step step = unsampled_step(0);
  step.earlier[Phase::input_wait] = 30 * kMs;
  budget.add(step);
  CHECK(budget.close(turn_of(85 * kMs)).phases[Phase::input_wait] == 50 * kMs);
}
