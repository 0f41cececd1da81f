#include <doctest/doctest.h>

#include "feature_cases.h"

namespace gpuutil {
namespace {

const Thresholds kT;

TEST_CASE(
    "photographs decoded in the training process are CPU-bound input, bounded by what two CPUs "
    "allow") {
  const RuleResult result = input_cpu_bound(photographs_without_workers(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  // 80 % waits, but 1.04 of 2 CPUs are in use: the step cannot fall under 52 % of what it is
  // (1.9x).
  CHECK(finding.gain_ratio.high == doctest::Approx(1 - 1.04 / 2));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.6 * (1 - 1.04 / 2)));
  CHECK(severity(finding) == Severity::critical);
  CHECK(finding.remedies == std::vector<std::string>{"loader_workers", "main_threads"});
  CHECK(says(finding, "80 % of the step waits for input"));
  CHECK(says(finding, "97 % of a fetch is CPU work"));
  CHECK(says(finding, "allow at most 1.92x"));
  CHECK(says(finding, "set num_workers=2 and torch.set_num_threads(1)"));
  CHECK(says(finding, "alternatives, not a sum"));
  CHECK(finding.confidence > 0.8);
}

TEST_CASE("the gain measured on the photographs lies inside the predicted range") {
  const GainRange gain = input_cpu_bound(photographs_without_workers(), kT).finding->gain_ratio;
  for (const double after_ms : {65.0, 78.0, 86.0}) {
    const double measured = 1 - after_ms / 123;
    CHECK(measured >= gain.low);
    CHECK(measured <= gain.high);
  }
}

TEST_CASE("a loader that keeps up is no finding of any input rule") {
  for (const Rule rule :
       {input_cpu_bound, input_latency_bound, input_single_process, too_few_cpus}) {
    CHECK(rule(healthy_loop(), kT).verdict == Verdict::clear);
  }
}

TEST_CASE("a wait just under the threshold is clear, just over it is found") {
  Features f = photographs_without_workers();
  set_wait(f, 0.049);
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::clear);
  CHECK(input_single_process(f, kT).verdict == Verdict::clear);
  set_wait(f, 0.051);
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::found);
  CHECK(input_single_process(f, kT).verdict == Verdict::found);
}

TEST_CASE(
    "items that sleep are latency-bound: more workers than CPUs, and nearly all of the wait to "
    "gain") {
  const RuleResult result = input_latency_bound(object_store_without_workers(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.gain_ratio.high == doctest::Approx(160.0 / 180));
  const double measured = 1 - 35.0 / 180;
  CHECK(finding.gain_ratio.low <= measured);
  CHECK(finding.gain_ratio.high >= measured);
  CHECK(says(finding, "set num_workers=9"));
  CHECK(finding.remedies == std::vector<std::string>{"loader_workers"});
  CHECK(input_cpu_bound(object_store_without_workers(), kT).verdict == Verdict::clear);
}

TEST_CASE(
    "two sleeping workers that do not keep up are latency-bound too, and prefetch becomes a "
    "remedy") {
  const RuleResult result = input_latency_bound(object_store_with_two_workers(), kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->remedies == std::vector<std::string>{"loader_workers", "loader_prefetch"});
  CHECK(says(*result.finding, "the workers compute 6 % of the time"));
  CHECK(says(*result.finding,
             "num_workers=9"));  // 160 ms of waiting for a step of 20 ms, and one more
}

TEST_CASE("busy workers are not latency-bound") {
  CHECK(input_latency_bound(photographs_with_workers(), kT).verdict == Verdict::clear);
}

TEST_CASE(
    "a thread that could run and is not let run wants CPU: a crowded machine is not called "
    "latency") {
  Features f = photographs_without_workers();
  f.fetch_cpu_ratio = 0.45;  // half of the fetch it stands in the run queue
  f.host.run_queue_wait_ratio = 0.5;
  CHECK(input_latency_bound(f, kT).verdict == Verdict::clear);
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::found);
}

TEST_CASE("without a CPU budget no rule blames the loader") {
  for (Features f : {photographs_without_workers(), object_store_with_two_workers()}) {
    f.host.cpu_budget_cores.reset();
    for (const Rule rule :
         {input_cpu_bound, input_latency_bound, input_single_process, too_few_cpus}) {
      const RuleResult result = rule(f, kT);
      if (result.verdict == Verdict::clear) continue;  // single process, where there are workers
      CHECK(result.verdict == Verdict::not_measured);
      CHECK(result.reason.find("CPU budget") != std::string::npos);
    }
  }
}

TEST_CASE("too few steps, no loader, unread CPU times: each says which source is missing") {
  Features few = photographs_without_workers();
  few.steps = 7;
  CHECK(input_cpu_bound(few, kT).reason == "7 comparable steps seen, 8 needed");
  Features none = photographs_without_workers();
  none.loader.reset();
  CHECK(input_single_process(none, kT).reason.find("no DataLoader") != std::string::npos);
  Features own = photographs_without_workers();
  own.host.own_cores.reset();
  CHECK(input_cpu_bound(own, kT).reason == "CPU time of this process not measured");
  Features theirs = object_store_with_two_workers();
  theirs.host.worker_cores.reset();
  theirs.workers[1].cores.reset();
  CHECK(input_latency_bound(theirs, kT).reason == "CPU time of the loader's workers not measured");
}

TEST_CASE("workers read one by one stand in for their total") {
  Features f = object_store_with_two_workers();
  f.host.worker_cores.reset();
  CHECK(input_latency_bound(f, kT).verdict == Verdict::found);
}

TEST_CASE(
    "without CPU time inside fetches the nature of the work is unknown, yet one process is one "
    "process") {
  Features f = photographs_without_workers();
  f.fetch_cpu_ratio.reset();
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::not_measured);
  CHECK(input_latency_bound(f, kT).reason == "CPU time inside fetches not measured");
  const RuleResult single = input_single_process(f, kT);
  REQUIRE(single.verdict == Verdict::found);
  CHECK(says(*single.finding, "num_workers=0"));
  f.fetch_cpu_ratio = 0.97;
  f.sampled_steps = 2;
  CHECK(input_cpu_bound(f, kT).reason == "CPU time inside fetches seen in 2 steps, 3 needed");
}

TEST_CASE("one process is clear where there are workers") {
  CHECK(input_single_process(object_store_with_two_workers(), kT).verdict == Verdict::clear);
}

TEST_CASE("one CPU that is used up leaves nothing to gain from workers") {
  Features f = photographs_without_workers();
  f.host.cpu_budget_cores = 1.0;
  f.host.own_cores = 0.99;
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::clear);
  CHECK(input_single_process(f, kT).verdict == Verdict::clear);
  CHECK(too_few_cpus(f, kT).verdict == Verdict::found);
}

TEST_CASE("one CPU and items that sleep still leave everything to gain") {
  Features f = object_store_without_workers();
  f.host.cpu_budget_cores = 1.0;
  const RuleResult result = input_latency_bound(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->gain_ratio.high > 0.8);
}

TEST_CASE("what others take of the budget lowers the low end and never the high one") {
  Features f = photographs_without_workers();
  const GainRange quiet = input_cpu_bound(f, kT).finding->gain_ratio;
  f.host.crowding_cores = 0.6;
  const RuleResult crowded = input_cpu_bound(f, kT);
  REQUIRE(crowded.verdict == Verdict::found);
  CHECK(crowded.finding->gain_ratio.low < quiet.low);
  CHECK(crowded.finding->gain_ratio.high == quiet.high);
  CHECK(says(*crowded.finding, "other programs take 0.6"));
}

TEST_CASE("an IterableDataset gets advice and the reason, never the worker remedy") {
  Features f = photographs_without_workers();
  f.loader->dataset = DatasetKind::iterable;
  const RuleResult result = input_cpu_bound(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "get_worker_info()"));
}

TEST_CASE("more than one rank gets advice only") {
  Features f = photographs_without_workers();
  f.ranks = 2;
  const RuleResult result = input_cpu_bound(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "only advises"));
}

TEST_CASE("a loader whose workers cannot be changed says why") {
  Features f = photographs_without_workers();
  f.loader->workers_changeable = false;
  f.loader->workers_reason = "the data set cannot be pickled";
  CHECK(says(*input_cpu_bound(f, kT).finding, "the data set cannot be pickled"));
}

TEST_CASE("waits in bursts are found with less confidence") {
  Features f = object_store_with_two_workers();
  const double steady = input_latency_bound(f, kT).finding->confidence;
  f.input_wait_seconds_p50 = 0.001;
  const RuleResult bursts = input_latency_bound(f, kT);
  CHECK(bursts.finding->confidence < 0.7 * steady);
  CHECK(says(*bursts.finding, "in bursts"));
}

TEST_CASE("counters and looks that disagree about the workers cost confidence") {
  Features f = object_store_with_two_workers();
  const double agreed = input_latency_bound(f, kT).finding->confidence;
  f.workers[0].waiting_ratio = f.workers[1].waiting_ratio = 0.3;
  CHECK(input_latency_bound(f, kT).finding->confidence < agreed);
}

TEST_CASE(
    "used-up CPUs behind a CPU-bound input are too few, with the ceiling and what would be "
    "enough") {
  const RuleResult result = too_few_cpus(photographs_with_workers(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.family == Family::resources);
  CHECK(says(finding, "2 CPUs are used up"));
  CHECK(says(finding, "these CPUs allow at most 1.03x"));
  CHECK(says(finding, "about 4 CPUs"));  // 1.94 CPUs over 55 % of the step
  CHECK(finding.gain_ratio.high == doctest::Approx(0.45));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.6 * 0.45));
  CHECK(finding.remedies.empty());
}

TEST_CASE("CPUs with room are not too few") {
  CHECK(too_few_cpus(photographs_without_workers(), kT).verdict == Verdict::clear);
  Features f = photographs_with_workers();
  f.host.cpu_budget_cores = 2.4;  // 81 % used
  CHECK(too_few_cpus(f, kT).verdict == Verdict::clear);
}

TEST_CASE("CPUs that other programs fill are not a budget too small") {
  Features f = photographs_without_workers();
  f.host.crowding_cores = 0.95;
  CHECK(too_few_cpus(f, kT).verdict == Verdict::clear);
  CHECK(input_cpu_bound(f, kT).finding->gain_ratio.low < kT.min_gain_ratio);
}

TEST_CASE("sleeping workers on full CPUs are not a lack of CPUs") {
  Features f = object_store_with_two_workers();
  f.host.own_cores = 1.9;
  CHECK(too_few_cpus(f, kT).verdict == Verdict::clear);
}

TEST_CASE("a quota that throttles is too few CPUs although the average use is below it") {
  Features f = photographs_with_workers();
  f.host.cpu_budget_cores = 2.5;
  f.host.cpu_budget_source = "cgroup quota: 2.5 CPUs";
  f.host.throttled_ratio = 0.3;
  const RuleResult result = too_few_cpus(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(says(*result.finding, "throttled"));
  CHECK(result.finding->where == "cgroup quota: 2.5 CPUs");
}

TEST_CASE("threads that outnumber the CPUs are named, with less confidence in what is used up") {
  Features f = photographs_with_workers();
  const double apart = too_few_cpus(f, kT).finding->confidence;
  f.main_threads = 2;
  const RuleResult result = too_few_cpus(f, kT);
  CHECK(result.finding->remedies == std::vector<std::string>{"main_threads"});
  CHECK(result.finding->confidence < apart);
}

}  // namespace
}  // namespace gpuutil
