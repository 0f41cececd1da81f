#include <doctest/doctest.h>

#include "feature_cases.h"

namespace gpuutil {
namespace {

const Thresholds kT;

TEST_CASE("workers started for each short epoch are found, though the step hardly waits") {
  const RuleResult result = worker_restart(short_epochs(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.family == Family::data);
  CHECK(finding.where == "train_loader");
  CHECK(finding.remedies == std::vector<std::string>{"loader_persistent"});
  CHECK(says(finding, "50 % of each epoch goes into starting 8 workers anew"));
  CHECK(says(finding, "persistent_workers=True"));
  CHECK(severity(finding) == Severity::critical);
  REQUIRE(evidence_of(finding, "turn_seconds") != nullptr);
  CHECK(evidence_of(finding, "turn_seconds")->value == doctest::Approx(0.3996));
  CHECK(evidence_of(finding, "epochs_per_minute")->value == doctest::Approx(75));
  CHECK(evidence_of(finding, "workers")->value == 8);
}

TEST_CASE("the gain is the share of the epoch; the making of the first batch is not sure to be saved") {
  const GainRange gain = worker_restart(short_epochs(), kT).finding->gain_ratio;
  CHECK(gain.low == doctest::Approx((0.040 + 0.200 + 0.160 - 8 * 0.010) / 0.8));
  CHECK(gain.high == doctest::Approx((0.040 + 0.200 + 0.160 - 0.0004) / 0.8));
}

TEST_CASE("the same start is nothing in a long epoch") {
  Features f = short_epochs();
  f.turn->epoch_seconds = 60;
  CHECK(worker_restart(f, kT).verdict == Verdict::clear);
}

TEST_CASE("a first batch that takes long because its items do is no restart") {
  Features f = short_epochs();
  f.turn->end_seconds = 0.002;
  f.turn->iter_seconds = 0.004;
  f.turn->first_fetch_seconds = 0.080;
  CHECK(worker_restart(f, kT).verdict == Verdict::clear);
}

TEST_CASE("workers that persist, and loaders without any, are clear") {
  Features f = short_epochs();
  f.loader->persistent = true;
  CHECK(worker_restart(f, kT).verdict == Verdict::clear);
  f = short_epochs();
  f.loader->workers = f.loader->user_workers = 0;
  CHECK(worker_restart(f, kT).verdict == Verdict::clear);
}

TEST_CASE("one turn, or none, or a handful of steps, is not enough to tell") {
  Features f = short_epochs();
  f.steps = 7;
  RuleResult result = worker_restart(f, kT);
  CHECK(result.reason == "7 comparable steps seen, 8 needed");
  f = short_epochs();
  f.turn->turns = 1;
  result = worker_restart(f, kT);
  CHECK(result.verdict == Verdict::not_measured);
  CHECK(result.reason == "1 epoch turns of the loader seen, 2 needed");
  f.turn.reset();
  CHECK(worker_restart(f, kT).verdict == Verdict::not_measured);
  f.loader.reset();
  CHECK(worker_restart(f, kT).verdict == Verdict::not_measured);
  f = short_epochs();
  f.turn->epoch_seconds = 0;
  CHECK(worker_restart(f, kT).verdict == Verdict::not_measured);
}

TEST_CASE("more turns make it surer") {
  Features f = short_epochs();
  f.turn->turns = 2;
  const double two = worker_restart(f, kT).finding->confidence;
  f.turn->turns = 6;
  CHECK(two == doctest::Approx(0.5));
  CHECK(worker_restart(f, kT).finding->confidence == doctest::Approx(1));
}

}  // namespace
}  // namespace gpuutil
