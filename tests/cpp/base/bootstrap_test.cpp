#include "base/bootstrap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "base/robust.h"

namespace gpuutil {
namespace {

using Values = std::vector<double>;

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// Step times that remember: log-normal around `level`, correlation `memory` from one to the next,
// and one step in fifty several times as long.
Values step_times(Random& random, size_t count, double memory, double level) {
  Values values(count);
  double state = normal(random);
  for (double& value : values) {
    state = memory * state + std::sqrt(1 - memory * memory) * normal(random);
    value = level * std::exp(0.1 * state);
    if (random.below(50) == 0) value *= 4;
  }
  return values;
}

double coverage(double memory, size_t count, std::optional<size_t> block_length) {
  constexpr int kTrials = 300;
  constexpr double kTruth = 1.05;
  Random random(2024);
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Values a = step_times(random, count, memory, kTruth);
    const Values b = step_times(random, count, memory, 1);
    const Interval interval =
        median_ratio_interval(a, b, {.block_length = block_length, .rounds = 400,
                                     .seed = static_cast<uint64_t>(trial)})
            .value();
    covered += interval.low <= kTruth && kTruth <= interval.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kTrials;
}

TEST_CASE("a 95 % interval covers the truth that often, whatever the memory of the noise") {
  for (const double memory : {0.0, 0.4, 0.7}) {
    const double covered = coverage(memory, 200, std::nullopt);
    CHECK_MESSAGE(covered >= 0.90, "memory " << memory);
    CHECK_MESSAGE(covered <= 0.99, "memory " << memory);
  }
  CHECK(coverage(0.4, 60, std::nullopt) >= 0.90);
}

TEST_CASE("resampling single values of an autocorrelated series would promise too much") {
  CHECK(coverage(0.7, 200, 1) < 0.80);
}

TEST_CASE("the middle is the ratio of the medians and lies inside the interval") {
  Random random(4);
  const Values a = step_times(random, 101, 0.5, 3);
  const Values b = step_times(random, 80, 0.5, 2);
  const Interval interval = median_ratio_interval(a, b).value();
  CHECK(interval.mid == doctest::Approx(median(a).value() / median(b).value()));
  CHECK(interval.low < interval.mid);
  CHECK(interval.mid < interval.high);
  CHECK(interval.low > 1.2);
  CHECK(interval.high < 1.8);
}

TEST_CASE("the same seed gives the same interval and another seed a similar one") {
  Random random(5);
  const Values a = step_times(random, 100, 0.5, 1);
  const Values b = step_times(random, 100, 0.5, 1);
  const Interval one = median_ratio_interval(a, b, {.seed = 9}).value();
  const Interval same = median_ratio_interval(a, b, {.seed = 9}).value();
  const Interval other = median_ratio_interval(a, b, {.seed = 10}).value();
  CHECK(one.low == same.low);
  CHECK(one.high == same.high);
  CHECK(one.low != other.low);
  CHECK(one.low == doctest::Approx(other.low).epsilon(0.01));
}

TEST_CASE("more confidence makes a wider interval, scale does not matter") {
  Random random(6);
  Values a = step_times(random, 100, 0.3, 1);
  const Values b = step_times(random, 100, 0.3, 1);
  const Interval wide = median_ratio_interval(a, b, {.confidence = 0.99}).value();
  const Interval narrow = median_ratio_interval(a, b, {.confidence = 0.8}).value();
  CHECK(wide.low < narrow.low);
  CHECK(wide.high > narrow.high);
  for (double& value : a) value *= 1e9;
  const Interval scaled = median_ratio_interval(a, b, {.confidence = 0.8}).value();
  CHECK(scaled.low == doctest::Approx(narrow.low * 1e9));
  CHECK(scaled.high == doctest::Approx(narrow.high * 1e9));
}

TEST_CASE("a draw of even size has the mean of its two middle values as median") {
  // Blocks of one out of four values. The wild value is drawn exactly twice with probability 0.21,
  // more often with 0.05: the 0.9 quantile of the median lies halfway to it, not at the low value.
  const Values a{1, 1, 1, 100};
  const Interval interval =
      median_ratio_interval(a, Values(4, 1.0), {.block_length = 1, .confidence = 0.8}).value();
  CHECK(interval.mid == 1);
  CHECK(interval.low == 1);
  CHECK(interval.high > 50);
}

TEST_CASE("constant samples leave no doubt about their ratio") {
  const Interval interval = median_ratio_interval(Values(20, 6.0), Values(30, 4.0)).value();
  CHECK(interval.low == doctest::Approx(1.5));
  CHECK(interval.high == doctest::Approx(1.5));
}

TEST_CASE("a block that is too long does not make the interval vanish") {
  Random random(8);
  const Values a = step_times(random, 40, 0, 1);
  const Values b = step_times(random, 40, 0, 1);
  const Interval interval = median_ratio_interval(a, b, {.block_length = 1000}).value();
  CHECK(interval.high - interval.low > 0.01);
}

TEST_CASE("what cannot be answered is not answered") {
  const Values good{1, 2, 3, 4};
  CHECK(median_ratio_interval(good, good));
  CHECK_FALSE(median_ratio_interval(Values{}, good));
  CHECK_FALSE(median_ratio_interval(good, Values{1, 2, 3}));
  CHECK_FALSE(median_ratio_interval(good, Values{1, 2, 3, 0}));
  CHECK_FALSE(median_ratio_interval(Values{1, 2, 3, -1}, good));
  CHECK_FALSE(median_ratio_interval(good, Values{1, 2, 3, std::nan("")}));
  CHECK_FALSE(median_ratio_interval(Values{1, 2, 3, INFINITY}, good));
  CHECK_FALSE(median_ratio_interval(good, good, {.block_length = 0}));
  CHECK_FALSE(median_ratio_interval(good, good, {.rounds = 0}));
  CHECK_FALSE(median_ratio_interval(good, good, {.confidence = 0}));
  CHECK_FALSE(median_ratio_interval(good, good, {.confidence = 1}));
}

TEST_CASE("the suggested block grows with the memory of the series and stays within its bounds") {
  double last = 0;
  for (const double memory : {0.0, 0.5, 0.9}) {
    Random random(12);
    double sum = 0;
    for (int i = 0; i < 30; ++i) {
      const size_t length = suggest_block_length(step_times(random, 200, memory, 1));
      CHECK(length >= 6);  // the cube root of 200
      CHECK(length <= 50);
      sum += static_cast<double>(length);
    }
    CHECK(sum / 30 > last + 0.5);
    last = sum / 30;
  }
  CHECK(last > 15);
}

TEST_CASE("short, constant and drifting series have a block length too") {
  CHECK(suggest_block_length({}) == 1);
  CHECK(suggest_block_length(Values{1, 2, 3}) == 1);
  CHECK(suggest_block_length(Values(100, 5.0)) == 5);
  Values drift(100);
  for (size_t i = 0; i < drift.size(); ++i) drift[i] = static_cast<double>(i);
  CHECK(suggest_block_length(drift) == 25);
}

}  // namespace
}  // namespace gpuutil
