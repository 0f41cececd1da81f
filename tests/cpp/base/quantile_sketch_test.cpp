#include "base/quantile_sketch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/random.h"

namespace gpuutil {
namespace {

constexpr double kRounding = 1e-9;  // of logarithms at a bucket's border, beside the stated error
constexpr double kQuantiles[] = {0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1};

double exact(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
}

QuantileSketch sketch_of(const std::vector<double>& values, size_t max_buckets = 2048) {
  QuantileSketch sketch(0.01, max_buckets);
  for (const double value : values) CHECK(sketch.add(value));
  return sketch;
}

std::vector<double> log_uniform(uint64_t seed, size_t count, double low, double high) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = low * std::pow(high / low, random.unit());
  return values;
}

TEST_CASE("an empty sketch has no quantile, and neither has a rank outside [0, 1]") {
  QuantileSketch sketch;
  CHECK_FALSE(sketch.quantile(0.5));
  sketch.add(1);
  CHECK_FALSE(sketch.quantile(-0.1));
  CHECK_FALSE(sketch.quantile(1.1));
  CHECK_FALSE(sketch.quantile(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("every quantile of any mixture lies within the stated relative error") {
  for (const double error : {0.001, 0.01, 0.05}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed);
      std::vector<double> values;
      QuantileSketch sketch(error, 1 << 16);
      const size_t count = 1 + random.below(3000);
      for (size_t i = 0; i < count; ++i) {
        double value = 1e6 * std::exp(0.1 * (random.unit() - 0.5));       // a steady step
        if (random.below(20) == 0) value = 1e3 * std::pow(1e9, random.unit());  // a stray one
        if (random.below(50) == 0) value = 0;
        values.push_back(value);
        REQUIRE(sketch.add(value));
      }
      std::sort(values.begin(), values.end());
      CHECK(sketch.count() == count);
      CHECK_FALSE(sketch.collapsed());
      for (const double q : kQuantiles) {
        const double truth = exact(values, q);
        CHECK(std::abs(sketch.quantile(q).value() - truth) <= truth * (error + kRounding));
      }
    }
  }
}

TEST_CASE("zeros are exact, and so is a single value") {
  const QuantileSketch mixed = sketch_of({0, 0, 5});
  CHECK(mixed.quantile(0) == 0);
  CHECK(mixed.quantile(0.5) == 0);
  CHECK(mixed.quantile(1) == 5);
  CHECK(sketch_of({0}).quantile(1) == 0);
}

TEST_CASE("the error holds over the whole range of double") {
  const double lowest = std::numeric_limits<double>::min();
  const double highest = std::numeric_limits<double>::max();
  QuantileSketch sketch(0.01, 100'000);
  for (const double value : {lowest, 1e-100, 1.0, 1e100, highest}) CHECK(sketch.add(value));
  CHECK(sketch.quantile(0).value() == doctest::Approx(lowest).epsilon(0.01));
  CHECK(sketch.quantile(0.25).value() == doctest::Approx(1e-100).epsilon(0.01));
  CHECK(sketch.quantile(0.5).value() == doctest::Approx(1).epsilon(0.01));
  CHECK(sketch.quantile(0.75).value() == doctest::Approx(1e100).epsilon(0.01));
  CHECK(std::isfinite(sketch.quantile(1).value()));
  CHECK(sketch.quantile(1).value() / highest >= 0.99 - kRounding);
}

TEST_CASE("values that have no place are refused and change nothing") {
  QuantileSketch sketch;
  CHECK_FALSE(sketch.add(-1));
  CHECK_FALSE(sketch.add(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(sketch.add(std::numeric_limits<double>::infinity()));
  CHECK(sketch.count() == 0);
}

TEST_CASE("merging equals adding everything to one sketch") {
  std::vector<double> first = log_uniform(1, 500, 1, 1e4);
  std::vector<double> second = log_uniform(2, 300, 1e3, 1e8);
  first.push_back(0);
  std::vector<double> all = first;
  all.insert(all.end(), second.begin(), second.end());
  // 200 buckets cannot hold it all: what is folded must not depend on the order either.
  for (const size_t max_buckets : {size_t{2048}, size_t{200}}) {
    const QuantileSketch whole = sketch_of(all, max_buckets);
    QuantileSketch merged = sketch_of(first, max_buckets);
    CHECK(merged.merge(sketch_of(second, max_buckets)));
    QuantileSketch reversed = sketch_of(second, max_buckets);
    CHECK(reversed.merge(sketch_of(first, max_buckets)));
    CHECK(merged.count() == all.size());
    CHECK(merged.collapsed() == whole.collapsed());
    CHECK(reversed.collapsed() == whole.collapsed());
    for (const double q : kQuantiles) {
      CHECK(merged.quantile(q) == whole.quantile(q));
      CHECK(reversed.quantile(q) == whole.quantile(q));
    }
  }
}

TEST_CASE("merging with itself, with an empty one and with another error") {
  QuantileSketch sketch = sketch_of({1, 2, 3});
  CHECK(sketch.merge(sketch));
  CHECK(sketch.count() == 6);
  CHECK(sketch.merge(QuantileSketch()));
  CHECK(sketch.count() == 6);
  QuantileSketch empty;
  CHECK(empty.merge(sketch));
  CHECK(empty.quantile(0) == sketch.quantile(0));
  CHECK_FALSE(sketch.merge(QuantileSketch(0.02)));
  CHECK(sketch.count() == 6);
}

TEST_CASE("beyond the allowed buckets the low end is folded and the high end stays right") {
  std::vector<double> values = log_uniform(9, 4000, 1, 1e12);
  const QuantileSketch sketch = sketch_of(values, 400);  // spans a factor of about 3000
  CHECK(sketch.collapsed());
  CHECK(sketch.count() == values.size());
  std::sort(values.begin(), values.end());
  for (const double q : {0.8, 0.9, 0.99, 1.0}) {
    const double truth = exact(values, q);
    CHECK(std::abs(sketch.quantile(q).value() - truth) <= truth * (0.01 + kRounding));
  }
  CHECK(sketch.quantile(0.1).value() > exact(values, 0.1));
}

TEST_CASE("one bucket still counts, and knows its greatest value") {
  const QuantileSketch sketch = sketch_of({1, 10, 100}, 1);
  CHECK(sketch.count() == 3);
  CHECK(sketch.quantile(1).value() == doctest::Approx(100).epsilon(0.01));
}

TEST_CASE("clear empties a sketch, its extremes included") {
  QuantileSketch sketch = sketch_of({0, 1e3, 1e9}, 10);
  sketch.clear();
  CHECK(sketch.count() == 0);
  CHECK_FALSE(sketch.collapsed());
  sketch.add(5);
  CHECK(sketch.quantile(0) == 5);
  CHECK(sketch.quantile(1) == 5);
}

TEST_CASE("settings without a meaning are refused") {
  CHECK_THROWS_AS(QuantileSketch(0), std::invalid_argument);
  CHECK_THROWS_AS(QuantileSketch(1), std::invalid_argument);
  CHECK_THROWS_AS(QuantileSketch(std::nan("")), std::invalid_argument);
  CHECK_THROWS_AS(QuantileSketch(0.01, 0), std::invalid_argument);
}

}  // namespace
}  // namespace gpuutil
