#include "tune/trial_stats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace gpuutil {
namespace {

double normal(Random& random) {
  const double u = std::max(random.unit(), 1e-12);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * random.unit());
}

// Alternating blocks of `size` values; `level(i)` is the run's own course at value i.
std::vector<Block> blocks(int count, int size, double gain, uint64_t seed,
                          const std::function<double(int)>& level, double noise = 0.02) {
  Random random(seed);
  std::vector<Block> result;
  int at = 0;
  for (int b = 0; b < count; ++b) {
    Block block;
    block.after = b % 2 == 1;
    for (int i = 0; i < size; ++i, ++at) {
      const double value = level(at) * std::exp(noise * normal(random));
      block.values.push_back(block.after ? value / (1 + gain) : value);
    }
    result.push_back(block);
  }
  return result;
}

double flat(int) { return 0.01; }

}  // namespace

TEST_CASE("a gain is found with its size inside the interval") {
  const auto result = compare(blocks(9, 12, 0.10, 1, flat), 1);
  REQUIRE(result);
  CHECK(result->speedup.low < 1.10);
  CHECK(result->speedup.high > 1.10);
  CHECK(result->speedup.mid == doctest::Approx(1.10).epsilon(0.02));
  CHECK(decide(*result, Policy{}, false) == Decision::keep);
}

TEST_CASE("no gain is never kept, and a loss is undone") {
  int kept = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    kept += decide(*compare(blocks(9, 12, 0, seed, flat), seed), Policy{}, false) == Decision::keep;
  }
  CHECK(kept == 0);
  CHECK(decide(*compare(blocks(9, 12, -0.1, 1, flat), 1), Policy{}, false) == Decision::undo);
}

TEST_CASE("a run that gets steadily faster does not credit the change") {
  const auto falling = [](int i) { return 0.01 * (1 - 0.004 * i); };
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const auto result = compare(blocks(9, 12, 0, seed, falling), seed);
    CHECK(decide(*result, Policy{}, false) != Decision::keep);
  }
}

TEST_CASE("a gain is seen through steady drift") {
  const auto rising = [](int i) { return 0.01 * (1 + 0.004 * i); };
  CHECK(decide(*compare(blocks(9, 12, 0.1, 3, rising), 3), Policy{}, false) == Decision::keep);
}

TEST_CASE("one jump of the run itself neither makes nor hides a gain") {
  const auto jump = [](int i) { return i < 55 ? 0.01 : 0.02; };
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CHECK(decide(*compare(blocks(9, 12, 0, seed, jump), seed), Policy{}, false) != Decision::keep);
  }
  CHECK(decide(*compare(blocks(17, 12, 0.1, 1, jump), 1), Policy{}, false) == Decision::keep);
}

TEST_CASE("spikes do not decide") {
  const auto spiky = [](int i) { return i % 17 == 3 ? 0.4 : 0.01; };
  CHECK(decide(*compare(blocks(9, 12, 0.1, 1, spiky), 1), Policy{}, false) == Decision::keep);
  CHECK(decide(*compare(blocks(9, 12, 0, 1, spiky), 1), Policy{}, false) != Decision::keep);
}

TEST_CASE("two blocks are compared without their neighbours") {
  const auto result = compare(blocks(2, 24, 0.5, 1, flat), 1);
  REQUIRE(result);
  CHECK(result->speedup.low > 1.4);
  CHECK(result->disjoint);
  CHECK(result->before_seconds == doctest::Approx(0.01).epsilon(0.05));
}

TEST_CASE("a handful of values gives their whole range as the interval") {
  const std::vector<Block> few{{false, {1.0, 1.1}}, {true, {0.5, 0.6}}};
  const auto result = compare(few, 1);
  REQUIRE(result);
  CHECK(result->speedup.low == doctest::Approx(1.0 / 0.6));
  CHECK(result->speedup.high == doctest::Approx(1.1 / 0.5));
}

TEST_CASE("nothing is said where an arm is empty") {
  CHECK_FALSE(compare(std::vector<Block>{{false, {1.0}}, {true, {}}}, 1));
  CHECK_FALSE(compare(std::vector<Block>{{false, {1.0, 2.0}}}, 1));
  CHECK_FALSE(compare(std::vector<Block>{}, 1));
}

TEST_CASE("a saving is kept where it loses nothing") {
  Comparison comparison;
  comparison.speedup = {0.995, 1.0, 1.004};
  CHECK(decide(comparison, Policy{}, true) == Decision::keep);
  CHECK(decide(comparison, Policy{}, false) == Decision::undo);
  comparison.speedup = {0.95, 0.97, 0.98};
  CHECK(decide(comparison, Policy{}, true) == Decision::undo);
  comparison.speedup = {0.97, 1.0, 1.02};
  CHECK(decide(comparison, Policy{}, true) == Decision::extend);
}

TEST_CASE("the verdict follows the ends of the interval and needs the rank test") {
  Comparison comparison;
  comparison.p_faster = 0.001;
  comparison.certain_low = 1.01;
  comparison.speedup = {1.021, 1.05, 1.08};
  CHECK(decide(comparison, Policy{}, false) == Decision::keep);
  comparison.certain_low = 0.99;  // so noisy that it may be no gain at all
  CHECK(decide(comparison, Policy{}, false) == Decision::extend);
  comparison.certain_low = 1.01;
  comparison.p_faster = 0.4;
  CHECK(decide(comparison, Policy{}, false) == Decision::extend);
  comparison.speedup = {1.019, 1.05, 1.08};
  comparison.p_faster = 0.001;
  CHECK(decide(comparison, Policy{}, false) == Decision::extend);
  comparison.speedup = {0.97, 1.0, 1.009};
  CHECK(decide(comparison, Policy{}, false) == Decision::undo);
}

TEST_CASE("arms are disjoint only where every value is below every other") {
  CHECK(all_below(std::vector<double>{1, 2}, std::vector<double>{3, 4}));
  CHECK_FALSE(all_below(std::vector<double>{1, 3}, std::vector<double>{3, 4}));
  CHECK_FALSE(all_below(std::vector<double>{}, std::vector<double>{3}));
}

}  // namespace gpuutil
