#include <doctest/doctest.h>

#include "feature_cases.h"

namespace gpuutil {
namespace {

const Thresholds kT;

Features bookkeeping_loop() {
  Features f = healthy_loop();
  f.user_python_seconds = 0.012;
  f.sampled_steps = 25;
  return f;
}

TEST_CASE(
    "a residual of an eighth of the step is named as a residual, worth all of itself on a CPU") {
  const RuleResult result = host_python(bookkeeping_loop(), kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->gain_ratio.high == doctest::Approx(0.12));
  CHECK(result.finding->gain_ratio.low == doctest::Approx(0.12 * (1 - 1.0 / 5)));
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "left over"));
  CHECK(says(*result.finding, "residual"));
  CHECK(severity(*result.finding) == Severity::warning);
}

TEST_CASE("a residual below a twentieth of the step is clear") {
  Features f = bookkeeping_loop();
  f.user_python_seconds = 0.0049;
  CHECK(host_python(f, kT).verdict == Verdict::clear);
  f.user_python_seconds = 0.0051;
  CHECK(host_python(f, kT).verdict == Verdict::found);
}

TEST_CASE("python hidden behind workers that cannot keep up is worth nothing") {
  Features f = bookkeeping_loop();
  set_wait(f, 0.30);
  const RuleResult result = host_python(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->gain_ratio.low == 0);
  CHECK(result.finding->gain_ratio.high == 0);
  CHECK(severity(*result.finding) == Severity::info);
  CHECK(says(*result.finding, "waited there"));
}

TEST_CASE(
    "python longer than the wait in front of it is worth what sticks out, and that not for sure") {
  Features f = bookkeeping_loop();
  f.user_python_seconds = 0.050;
  set_wait(f, 0.30);
  const GainRange gain = host_python(f, kT).finding->gain_ratio;
  CHECK(gain.low == 0);
  CHECK(gain.high == doctest::Approx(0.20));
}

TEST_CASE("without workers nothing hides it, however long the input takes") {
  Features f = bookkeeping_loop();
  set_wait(f, 0.30);
  f.loader->workers = 0;
  f.workers.clear();
  CHECK(host_python(f, kT).finding->gain_ratio.high == doctest::Approx(0.12));
}

TEST_CASE("beside a device whose time is not measured the rule abstains") {
  Features f = bookkeeping_loop();
  f.device_is_host = false;
  const RuleResult result = host_python(f, kT);
  CHECK(result.verdict == Verdict::not_measured);
  CHECK(result.reason.find("device time not measured") != std::string::npos);
}

TEST_CASE("phases that were not seen, or in too few steps, are not a residual of zero") {
  Features f = bookkeeping_loop();
  f.user_python_seconds.reset();
  CHECK(host_python(f, kT).verdict == Verdict::not_measured);
  f = bookkeeping_loop();
  f.sampled_steps = 2;
  CHECK(host_python(f, kT).reason == "2 sampled steps seen, 3 needed");
  f = bookkeeping_loop();
  f.steps = 3;
  CHECK(host_python(f, kT).reason == "3 comparable steps seen, 8 needed");
}

TEST_CASE("more sampled steps narrow the range and raise the confidence") {
  Features f = bookkeeping_loop();
  f.sampled_steps = 4;
  const Finding few = *host_python(f, kT).finding;
  f.sampled_steps = 100;
  const Finding many = *host_python(f, kT).finding;
  CHECK(many.gain_ratio.low > few.gain_ratio.low);
  CHECK(many.gain_ratio.high == few.gain_ratio.high);
  CHECK(many.confidence > few.confidence);
}

}  // namespace
}  // namespace gpuutil
