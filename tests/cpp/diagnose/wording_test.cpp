#include "diagnose/wording.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

TEST_CASE("percentages show as many digits as they mean") {
  CHECK(percent_text(0) == "0 %");
  CHECK(percent_text(0.803) == "80 %");
  CHECK(percent_text(0.0123) == "1.2 %");
  CHECK(percent_text(0.05) == "5 %");
  CHECK(percent_text(0.0042) == "0.42 %");
  CHECK(percent_text(0.00002) == "0.002 %");
  CHECK(percent_text(1) == "100 %");
  CHECK(percent_text(1e-9) == "0 %");
}

TEST_CASE("a range whose ends print alike is one number") {
  CHECK(percent_range_text(0.288, 0.48) == "29-48 %");
  CHECK(percent_range_text(0.301, 0.302) == "30 %");
}

TEST_CASE("durations keep three digits from microseconds to minutes") {
  CHECK(duration_text(1.2e-6) == "1.2 us");
  CHECK(duration_text(0.00083) == "830 us");
  CHECK(duration_text(0.00124) == "1.24 ms");
  CHECK(duration_text(0.0621) == "62.1 ms");
  CHECK(duration_text(0.123) == "123 ms");
  CHECK(duration_text(0.9996) == "1.00 s");
  CHECK(duration_text(11.24) == "11.2 s");
  CHECK(duration_text(754) == "754 s");
  CHECK(duration_text(0) == "0 us");
}

TEST_CASE("cores, speed-ups and counts") {
  CHECK(cores_text(2) == "2");
  CHECK(cores_text(1.94) == "1.94");
  CHECK(cores_text(0.6) == "0.6");
  CHECK(cores_text(16.2) == "16");
  CHECK(speedup_text(1.784) == "1.78x");
  CHECK(count_text(258.3) == "258");
  CHECK(count_text(9.7) == "9.7");
  CHECK(count_text(0.52) == "0.52");
}

}  // namespace
}  // namespace gpuutil
