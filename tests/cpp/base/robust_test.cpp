#include "base/robust.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"

namespace gpuutil {
namespace {

using doctest::Approx;
using Values = std::vector<double>;

TEST_CASE("nothing in, nothing out") {
  CHECK_FALSE(median(Values{}));
  CHECK_FALSE(quantile(Values{}, 0.5));
  CHECK_FALSE(mad(Values{}));
  CHECK_FALSE(trimmed_mean(Values{}, 0.1));
}

TEST_CASE("the median is the middle value, or the mean of the two middle ones") {
  CHECK(median(Values{4}) == 4);
  CHECK(median(Values{9, 1, 5}) == 5);
  CHECK(median(Values{9, 1, 5, 2}) == 3.5);
  CHECK(median(Values{1, 1, 1e300}) == 1);
  const double huge = std::numeric_limits<double>::max();
  CHECK(median(Values{huge, huge}) == huge);
}

TEST_CASE("the input of the copying forms keeps its order") {
  const Values values{3, 1, 2};
  median(values);
  mad(values);
  trimmed_mean(values, 0.1);
  CHECK(values == Values{3, 1, 2});
}

TEST_CASE("quantiles interpolate between neighbours as definition 7 says") {
  const Values values{40, 10, 30, 20};
  CHECK(quantile(values, 0) == 10);
  CHECK(quantile(values, 1) == 40);
  CHECK(quantile(values, 0.25).value() == Approx(17.5));
  CHECK(quantile(values, 0.9).value() == Approx(37));
  CHECK(quantile(Values{7}, 0.3) == 7);
  CHECK_FALSE(quantile(values, -0.01));
  CHECK_FALSE(quantile(values, 1.01));
  CHECK_FALSE(quantile(values, std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("a quantile agrees with full sorting, whatever the size and order") {
  Random random(17);
  for (size_t size = 1; size <= 60; ++size) {
    Values values(size);
    for (double& value : values) value = static_cast<double>(random.below(20));
    Values sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (const double q : {0.0, 0.1, 0.5, 0.77, 1.0}) {
      const double place = q * static_cast<double>(size - 1);
      const auto low = static_cast<size_t>(place);
      const size_t high = std::min(low + 1, size - 1);
      const double expected =
          sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
      CHECK(quantile(values, q).value() == Approx(expected));
    }
  }
}

TEST_CASE("the median absolute deviation ignores a wild value and scales to a standard deviation") {
  CHECK(mad(Values{1, 2, 3, 4, 1e9}) == 1);
  CHECK(mad(Values{1, 2, 3, 4, 1e9}, MadScale::normal).value() == Approx(1.4826).epsilon(1e-4));
  CHECK(mad(Values{5, 5, 5}) == 0);
}

TEST_CASE("a trimmed mean cuts whole values from both ends and keeps at least one") {
  CHECK(trimmed_mean(Values{1, 2, 3, 4, 1e9}, 0.2).value() == Approx(3));
  CHECK(trimmed_mean(Values{1, 2, 3, 6}, 0).value() == Approx(3));
  CHECK(trimmed_mean(Values{1, 2, 9}, 0.49).value() == Approx(2));
  CHECK(trimmed_mean(Values{8}, 0.49) == 8);
  CHECK_FALSE(trimmed_mean(Values{1, 2}, 0.5));
  CHECK_FALSE(trimmed_mean(Values{1, 2}, -0.1));
}

}  // namespace
}  // namespace gpuutil
