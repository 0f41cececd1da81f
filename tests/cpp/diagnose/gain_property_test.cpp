#include <doctest/doctest.h>

#include <random>

#include "feature_cases.h"

namespace gpuutil {
namespace {

double pick(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// Any window at all, likely or not.
Features any_features(std::mt19937& random) {
  const auto maybe = [&](double low, double high) {
    return random() % 5 == 0 ? std::optional<double>()
                             : std::optional<double>(pick(random, low, high));
  };
  Features f = healthy_loop();
  f.steps = static_cast<int64_t>(random() % 100);
  f.sampled_steps = static_cast<int64_t>(random() % 30);
  f.step_seconds_p50 = random() % 20 == 0 ? 0 : pick(random, 1e-5, 10);
  set_wait(f, random() % 10 == 0 ? 1.0 : pick(random, 0, 1));
  if (random() % 3 == 0) f.input_wait_seconds_p50 = 0;
  f.fetch_cpu_ratio = maybe(0, 1.5);
  f.user_python_seconds = maybe(0, 2 * f.step_seconds_p50);
  f.device_is_host = random() % 4 != 0;
  f.main_threads = static_cast<int32_t>(random() % 4);
  f.loader->workers = static_cast<int32_t>(random() % 5);
  f.workers.assign(static_cast<size_t>(f.loader->workers), {});
  f.loader->fetch = {maybe(0, 0.1), maybe(0, 0.1), maybe(0, 0.1), maybe(0, 0.1)};
  f.loader->user_workers = static_cast<int32_t>(random() % 5);
  if (random() % 5 == 0) {
    f.turn.reset();
  } else {
    f.turn->turns = static_cast<int32_t>(random() % 9);
    f.turn->epoch_seconds = random() % 20 == 0 ? 0 : pick(random, 1e-3, 60);
    f.turn->iter_seconds = pick(random, 0, 5);
    f.turn->first_fetch_seconds = pick(random, 0, 5);
  }
  for (WorkerLoad& worker : f.workers) worker = {7, maybe(0, 2), maybe(0, 1), maybe(0, 1), 2};
  if (random() % 20 == 0) f.loader.reset();
  f.host.cpu_budget_cores = maybe(0, 8);
  f.host.own_cores = maybe(0, 4);
  f.host.worker_cores = maybe(0, 6);
  f.host.crowding_cores = maybe(0, 10);
  f.host.throttled_ratio = maybe(0, 1);
  f.host.run_queue_wait_ratio = maybe(0, 1);
  f.host.mask_cores = maybe(0, 8);
  f.host.allowed_cores = maybe(0, 8);
  f.host.inherited_cores = maybe(0, 8);
  f.host.quotas_known = random() % 4 != 0;
  f.host.quota_cores = maybe(0, 8);
  f.worker_mask_cores = maybe(0, 8);
  f.operator_seconds = maybe(0, 2 * f.step_seconds_p50);
  f.host.shm_size_bytes = maybe(0, 1e8);
  f.host.shm_free_bytes = maybe(0, 1e8);
  if (f.loader && random() % 3 == 0) f.loader->batch_bytes.reset();
  f.host.open_descriptors = maybe(0, 2000);
  f.host.descriptor_limit = maybe(0, 2000);
  f.host.descriptor_hard_limit = maybe(0, 4000);
  return f;
}

TEST_CASE("whatever the window, gains lie in [0, 1), in order, and confidence in [0, 1]") {
  std::mt19937 random(20260807);
  int found_count = 0;
  for (int i = 0; i < 20000; ++i) {
    const Features f = any_features(random);
    for (const RuleEntry& rule : kRules) {
      const RuleResult result = rule.run(f, kThresholds);
      if (result.verdict == Verdict::not_measured) CHECK_FALSE(result.reason.empty());
      if (result.verdict != Verdict::found) continue;
      ++found_count;
      REQUIRE(result.finding);
      const Finding& finding = *result.finding;
      REQUIRE(finding.gain_ratio.low >= 0);
      REQUIRE(finding.gain_ratio.low <= finding.gain_ratio.high);
      REQUIRE(finding.gain_ratio.high < 1);
      REQUIRE(finding.confidence >= 0);
      REQUIRE(finding.confidence <= 1);
      REQUIRE_FALSE(finding.evidence.empty());
      for (const Evidence& item : finding.evidence) REQUIRE(std::isfinite(item.value));
    }
  }
  CHECK(found_count > 1000);
}

// Both ends of the gain of one rule; a rule that does not fire gains nothing.
GainRange gain_of(const RuleEntry& rule, const Features& f) {
  const RuleResult result = rule.run(f, kThresholds);
  return result.finding ? result.finding->gain_ratio : GainRange{};
}

TEST_CASE("more waiting never predicts less gain from any rule on input") {
  for (const Features& base : {photographs_without_workers(), photographs_with_workers(),
                               object_store_without_workers(), object_store_with_two_workers(),
                               rows_one_by_one(), arrays_put_together()}) {
    for (const RuleEntry& rule : kRules) {
      if (rule.id == "host_python" || rule.id == "main_threads") continue;
      GainRange before;
      for (int percent = 0; percent <= 100; ++percent) {
        Features f = base;
        set_wait(f, percent / 100.0);
        const GainRange gain = gain_of(rule, f);
        CAPTURE(rule.id);
        CAPTURE(percent);
        CHECK(gain.low >= before.low);
        CHECK(gain.high >= before.high);
        before = gain;
      }
    }
  }
}

TEST_CASE("more CPUs never predict less gain from workers") {
  for (const Rule rule : {input_cpu_bound, input_latency_bound, input_single_process}) {
    const RuleEntry entry{"", Family::data, rule};
    for (const Features& base : {photographs_without_workers(), object_store_without_workers()}) {
      GainRange before;
      for (double cores = 0.5; cores <= 16; cores += 0.25) {
        Features f = base;
        f.host.cpu_budget_cores = cores;
        const GainRange gain = gain_of(entry, f);
        CHECK(gain.low >= before.low);
        CHECK(gain.high >= before.high);
        before = gain;
      }
    }
  }
}

TEST_CASE("more of the user's own Python never predicts less gain") {
  const RuleEntry entry{"", Family::monitoring, host_python};
  GainRange before;
  for (int percent = 0; percent <= 100; ++percent) {
    Features f = healthy_loop();
    f.user_python_seconds = f.step_seconds_p50 * percent / 100;
    const GainRange gain = gain_of(entry, f);
    CHECK(gain.low >= before.low);
    CHECK(gain.high >= before.high);
    before = gain;
  }
}

TEST_CASE("input made free is worth step minus headspace and never more") {
  for (const Features& base : {photographs_without_workers(), object_store_without_workers()}) {
    Features f = base;
    f.host.cpu_budget_cores = 1000;  // no bound from the CPUs
    const Diagnosis diagnosis = diagnose(f);
    REQUIRE_FALSE(diagnosis.findings.empty());
    const double saved = 1 - f.headspace_seconds() / f.step_seconds_p50;
    for (const Finding& finding : diagnosis.findings)
      CHECK(finding.gain_ratio.high <= saved + 1e-9);
    CHECK(diagnosis.findings.front().gain_ratio.high == doctest::Approx(saved));
  }
}

}  // namespace
}  // namespace gpuutil
