// per_row_fetch and collate_bound: what of a fetch in the training process could be shorter.
#include <doctest/doctest.h>

#include "feature_cases.h"

namespace gpuutil {
namespace {

const Thresholds kT;

RemedyOffer short_way(int64_t value) {
  RemedyOffer offer;
  offer.remedy = "loader_batch_fetch";
  offer.value = value;
  offer.to = 1;
  return offer;
}

TEST_CASE("rows read one by one are found, with what one indexing saves of the step") {
  const RuleResult result = per_row_fetch(rows_one_by_one(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  // 2.4 ms a batch become 0.2 ms: 2.2 of 3.5 ms by seconds, 92 % of a wait of 2.5 ms by share.
  CHECK(finding.gain_ratio.high == doctest::Approx(2.2 / 3.5));
  CHECK(finding.gain_ratio.low == doctest::Approx(kT.fetch_cost_reached * 2.2 / 3.5));
  CHECK(severity(finding) == Severity::critical);
  CHECK(finding.remedies == std::vector<std::string>{"loader_batch_fetch"});
  CHECK(finding.where == "train_loader");
  CHECK(says(finding, "rows are read one by one: 2.40 ms a batch, at once 200 us"));
  CHECK(says(finding, "BatchSampler"));
  REQUIRE(evidence_of(finding, "batch_seconds") != nullptr);
  CHECK(evidence_of(finding, "batch_seconds")->value == 0.0002);
  // The collate goes with the rows: one finding speaks of both.
  CHECK(collate_bound(rows_one_by_one(), kT).verdict == Verdict::clear);
}

TEST_CASE("batches that were slower when they were timed save no more than their share of the wait") {
  Features f = rows_one_by_one();
  f.loader->fetch.row_seconds = 0.022;
  f.loader->fetch.collate_seconds = 0.002;
  f.loader->fetch.batch_seconds = 0.006;
  const double share = 1 - 6.0 / 24;
  CHECK(per_row_fetch(f, kT).finding->gain_ratio.high == doctest::Approx(share * 2.5 / 3.5));
}

TEST_CASE("every micro-batch of a step is fetched") {
  Features f = rows_one_by_one();
  f.step_seconds_p50 *= 4;
  set_wait(f, 2.5 / 3.5);
  f.micro_steps_per_step = 4;
  CHECK(per_row_fetch(f, kT).finding->gain_ratio.high == doctest::Approx(2.2 / 3.5));
}

TEST_CASE("large rows, which one indexing copies as slowly, are no finding") {
  Features f = rows_one_by_one();
  f.loader->fetch.batch_seconds = 0.0024;
  CHECK(per_row_fetch(f, kT).verdict == Verdict::clear);
}

TEST_CASE("a fetch that training does not wait for is no finding") {
  Features f = rows_one_by_one();
  set_wait(f, 0.04);
  CHECK(per_row_fetch(f, kT).verdict == Verdict::clear);
  CHECK(collate_bound(f, kT).verdict == Verdict::clear);
}

TEST_CASE("batches that are made the short way already are no finding") {
  for (Features f : {rows_one_by_one(), arrays_put_together()}) {
    f.loader->offers = {short_way(1)};
    CHECK(per_row_fetch(f, kT).verdict == Verdict::clear);
    CHECK(collate_bound(f, kT).verdict == Verdict::clear);
  }
}

TEST_CASE("with workers, or before a fetch was timed, neither rule can tell") {
  Features workers = object_store_with_two_workers();
  workers.loader->fetch = rows_one_by_one().loader->fetch;
  for (const Features& f : {workers, photographs_without_workers()}) {
    for (const Rule rule : {per_row_fetch, collate_bound}) {
      const RuleResult result = rule(f, kT);
      CHECK(result.verdict == Verdict::not_measured);
    }
  }
  CHECK(per_row_fetch(workers, kT).reason.find("workers") != std::string::npos);
  CHECK(per_row_fetch(photographs_without_workers(), kT).reason == "no fetch was timed apart");
}

TEST_CASE("items with work of their own are not rows; cheap ones of a data set unknown cannot be told") {
  Features f = photographs_without_workers();
  f.loader->fetch = {0.096, 0.001, {}, {}};
  CHECK(per_row_fetch(f, kT).verdict == Verdict::clear);
  f.loader->batch_size = 256;
  f.loader->fetch.row_seconds = 0.002;
  CHECK(per_row_fetch(f, kT).verdict == Verdict::not_measured);
}

TEST_CASE("small arrays put together one by one are found, with what one stack a field saves") {
  const RuleResult result = collate_bound(arrays_put_together(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.gain_ratio.high == doctest::Approx(1.1 / 3.5));
  CHECK(finding.gain_ratio.low == doctest::Approx(kT.fetch_cost_reached * 1.1 / 3.5));
  CHECK(finding.remedies == std::vector<std::string>{"loader_batch_fetch"});
  CHECK(says(finding, "58 % of a fetch puts items together (collate): 1.40 ms a batch"));
}

TEST_CASE("somebody's own collate is priced and advised on, and promises nothing at the low end") {
  Features f = arrays_put_together();
  f.loader->fetch.stack_seconds.reset();
  const RuleResult result = collate_bound(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->gain_ratio.low == 0);
  CHECK(result.finding->gain_ratio.high == doctest::Approx(1.4 / 3.5));
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "collate_fn"));
}

TEST_CASE("a collate that is a small part of the fetch is no finding") {
  Features f = arrays_put_together();
  f.loader->fetch = {0.0022, 0.0002, {}, 0.0001};
  CHECK(collate_bound(f, kT).verdict == Verdict::clear);
}

TEST_CASE("more than one rank gets advice only from the rules on a fetch") {
  for (Features f : {rows_one_by_one(), arrays_put_together()}) {
    f.ranks = 2;
    const Diagnosis diagnosis = diagnose(f);
    for (const char* id : {"per_row_fetch", "collate_bound"}) {
      const Finding* finding = finding_of(diagnosis, id);
      if (finding != nullptr) CHECK(finding->remedies.empty());
    }
  }
}

}  // namespace
}  // namespace gpuutil
