#include "profile/window.h"

#include <doctest/doctest.h>

#include "profile/change_detector.h"
#include "profile/steady_profile.h"
#include "profile/waterfall.h"
#include "steps.h"

using namespace gpuutil;
using namespace gpuutil::test;

namespace {

double phase(const Features& features, Phase p) {
  const auto& value = features.phase_ratio[static_cast<size_t>(p)];
  REQUIRE(value.has_value());
  return *value;
}

}  // namespace

TEST_CASE("a window keeps the latest comparable steps") {
  Window window(50);
  for (int i = 0; i < 120; ++i) {
    Step step = i % 10 == 0 ? sampled_step(i) : unsampled_step(i);
    if (i % 7 == 0) step.marks = kStepEvaluation;
    window.add(step);
  }
  CHECK(window.size() == 50);
  size_t sampled = 0;
  for (const Step& step : window.steps()) {
    CHECK(step.marks == kStepClean);
    sampled += step.sampled ? 1 : 0;
  }
  CHECK(window.sampled() == sampled);
}

TEST_CASE("a change by gpuutil restarts the window") {
  Window window;
  for (int i = 0; i < 20; ++i) window.add(unsampled_step(i));
  Step changed = unsampled_step(20);
  changed.marks = kStepChanged;
  window.add(changed);
  CHECK(window.empty());
}

TEST_CASE("a new cycle restarts the window, one skipped step does not") {
  Window window;
  for (int i = 0; i < 20; ++i) window.add(unsampled_step(i));
  Step skipped = unsampled_step(20);
  skipped.optimizer_ends = 0;
  window.add(skipped);
  window.add(unsampled_step(21));
  CHECK(window.size() == 21);
  for (int i = 22; i < 26; ++i) {
    Step accumulated = unsampled_step(i);
    accumulated.micro_steps = 4;
    window.add(accumulated);
  }
  CHECK(window.size() == 4);
  CHECK(window.steps().front().micro_steps == 4);
}

TEST_CASE("an empty window gives no features and no waterfall") {
  CHECK(steady_features(Window()).steps == 0);
  CHECK_FALSE(host_waterfall(Window()).has_value());
}

TEST_CASE("features of a window that nobody looked into know the wait and nothing else") {
  Window window;
  for (int i = 0; i < 20; ++i) window.add(unsampled_step(i, (70 + i) * kMs));
  const Features f = steady_features(window);
  CHECK(f.steps == 20);
  CHECK(f.sampled_steps == 0);
  CHECK(f.coverage_ratio == 0);
  CHECK(f.step_seconds_p50 == doctest::Approx(0.1145));
  CHECK(f.input_wait_seconds_p50 == doctest::Approx(0.0795));
  CHECK(f.input_wait_seconds_p95 == doctest::Approx(0.08805));
  CHECK(f.headspace_seconds() == doctest::Approx(0.035));
  CHECK(f.input_wait_ratio == doctest::Approx(0.0795 / 0.1145));
  CHECK(f.samples_per_step == 16);
  CHECK(f.has_optimizer);
  CHECK_FALSE(f.phase_ratio[static_cast<size_t>(Phase::forward)].has_value());
  CHECK_FALSE(f.phase_ratio[static_cast<size_t>(Phase::other)].has_value());
  CHECK_FALSE(f.operator_seconds.has_value());
  CHECK_FALSE(f.fetch_cpu_ratio.has_value());
  CHECK(phase(f, Phase::checkpoint) == 0);
}

TEST_CASE("what sampled steps tell is scaled to the steps that nobody slowed down") {
  Window window;
  for (int i = 0; i < 40; ++i) window.add(i % 10 == 0 ? sampled_step(i) : unsampled_step(i));
  const Features f = steady_features(window);
  CHECK(f.sampled_steps == 4);
  CHECK(f.step_seconds_p50 == doctest::Approx(0.115));
  CHECK(f.step_seconds_p95 == doctest::Approx(0.115));  // not the 0.150 of a sampled one
  CHECK(f.operator_seconds == doctest::Approx(0.021));
  CHECK(f.python_gap_seconds == doctest::Approx(0.014));
  CHECK(f.user_python_seconds == doctest::Approx(0.007));
  CHECK(f.fetch_cpu_ratio == doctest::Approx(0.25));
  CHECK(f.coverage_ratio == doctest::Approx(600.0 / (36 * 115 + 600)));
  double sum = 0;
  for (size_t i = 0; i < kPhaseCount; ++i) sum += phase(f, static_cast<Phase>(i));
  CHECK(sum == doctest::Approx(1.0));
  CHECK(phase(f, Phase::backward) == doctest::Approx(2 * phase(f, Phase::forward)));
}

TEST_CASE("without a fetch on the training thread the wait is unknown") {
  Window window;
  for (int i = 0; i < 20; ++i) {
    Step step = unsampled_step(i, 0);
    step.micro_steps = 0;
    step.loader = 0;
    window.add(step);
  }
  CHECK_FALSE(
      steady_features(window).phase_ratio[static_cast<size_t>(Phase::input_wait)].has_value());
}

TEST_CASE("the host's waterfall adds up to one and keeps what nobody saw apart") {
  Window window;
  for (int i = 0; i < 40; ++i) window.add(i % 10 == 0 ? sampled_step(i) : unsampled_step(i));
  const Waterfall seen = *host_waterfall(window);
  CHECK(seen.total() == doctest::Approx(1.0));
  CHECK(seen.unexplained_ratio == doctest::Approx(0.0));
  REQUIRE(seen.lost.size() == 3);
  CHECK(seen.lost[0].cause == "input_wait");
  CHECK(*seen.busy_ratio == doctest::Approx((36 * 21 + 4 * 42) / (36 * 115.0 + 600)));

  Window blind;
  for (int i = 0; i < 40; ++i) blind.add(unsampled_step(i));
  const Waterfall unseen = *host_waterfall(blind);
  CHECK_FALSE(unseen.busy_ratio.has_value());
  CHECK(unseen.total() == doctest::Approx(1.0));
  CHECK(unseen.unexplained_ratio == doctest::Approx(35.0 / 115));

  // Unsampled steps that work longer than the slowed-down sampled ones do something that none of
  // these did.
  Window strange;
  for (int i = 0; i < 40; ++i) {
    strange.add(i % 10 == 0 ? sampled_step(i, 80 * kMs, 1) : unsampled_step(i, 80 * kMs, 70 * kMs));
  }
  const Waterfall odd = *host_waterfall(strange);
  CHECK(odd.total() == doctest::Approx(1.0));
  CHECK(odd.unexplained_ratio == doctest::Approx(36 * 35.0 / (36 * 150 + 4 * 115)));
}

TEST_CASE("a lasting change of step time or wait by 1.4 is seen, single outliers are not") {
  ChangeDetector detector;
  int64_t i = 0;
  for (; i < 40; ++i) detector.add(i % 6 == 5 ? unsampled_step(i, 2000 * kMs) : unsampled_step(i));
  CHECK_FALSE(detector.moved().has_value());
  for (int n = 0; n < 20; ++n) detector.add(unsampled_step(i++, 95 * kMs));  // 1.13 and 1.19
  CHECK_FALSE(detector.moved().has_value());
  for (int n = 0; n < 20; ++n) detector.add(unsampled_step(i++, 130 * kMs));
  REQUIRE(detector.moved().has_value());
  CHECK_FALSE(detector.moved()->wait);
  CHECK(detector.moved()->factor == doctest::Approx(165.0 / 115));
  detector.rearm();
  for (int n = 0; n < 40; ++n) detector.add(unsampled_step(i++, 130 * kMs));
  CHECK_FALSE(detector.moved().has_value());
}

TEST_CASE("a wait that moves within an unchanged step time is seen, a tiny one is not") {
  ChangeDetector detector;
  int64_t i = 0;
  for (; i < 16; ++i) detector.add(unsampled_step(i, 20 * kMs, 95 * kMs));
  for (int n = 0; n < 16; ++n) detector.add(unsampled_step(i++, 45 * kMs, 70 * kMs));
  REQUIRE(detector.moved().has_value());
  CHECK(detector.moved()->wait);
  ChangeDetector idle;
  for (i = 0; i < 16; ++i) idle.add(unsampled_step(i, 1000, 100 * kMs));
  for (int n = 0; n < 16; ++n) idle.add(unsampled_step(i++, 9000, 100 * kMs));
  CHECK_FALSE(idle.moved().has_value());
}

TEST_CASE("batches that arrive two at a time do not hide the wait from the median") {
  Window window;
  for (int64_t i = 0; i < 40; ++i) window.add(unsampled_step(i, i % 2 == 0 ? 80 * kMs : 0));
  CHECK(steady_features(window).input_wait_seconds_p50 < 0.05);
  const Features features = steady_features(window, 2);
  CHECK(features.input_wait_seconds_p50 == doctest::Approx(0.040));
  CHECK(features.step_seconds_p50 == doctest::Approx(0.075));
  CHECK(features.headspace_seconds() == doctest::Approx(0.035));
}
