#include <doctest/doctest.h>

#include <limits>

#include "feature_cases.h"

namespace gpuutil {
namespace {

const Thresholds kT;

using Names = std::vector<std::string>;

// ---- cpu_quota

TEST_CASE("a quota below the mask that is used up names both numbers and the share of stops") {
  const RuleResult result = cpu_quota(throttled_container(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  // 12 threads run for 2/12 of a period and stand still for the rest of it, in 60 % of the periods.
  CHECK(finding.gain_ratio.high == doctest::Approx(0.6 * (1 - 2.0 / 12)));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.5 * 0.6 * (1 - 2.0 / 12)));
  CHECK(finding.remedies == Names{"main_threads"});
  CHECK(says(finding, "60 % of its periods"));
  CHECK(says(finding, "by the quota of 2 CPUs, not by the 12 of the mask"));
  CHECK(finding.where == "cgroup v2 quota at /sys/fs/cgroup");
}

TEST_CASE("fewer threads than the mask has CPUs promise less from the quota, never more") {
  Features f = throttled_container();
  f.main_threads = 2;  // and two workers: four threads
  const GainRange gain = cpu_quota(f, kT).finding->gain_ratio;
  CHECK(gain.low == doctest::Approx(0.5 * 0.6 * (1 - 2.0 / 4)));
  f.main_threads = 1;
  f.loader->workers = 0;  // one thread cannot use up two CPUs: somebody else's threads did
  CHECK(cpu_quota(f, kT).finding->gain_ratio.low == 0);
}

TEST_CASE("a quota that is not used up limits nobody, least of all work that sleeps") {
  Features f = object_store_without_workers();
  f.host.mask_cores = 12.0;
  f.host.quota_cores = 4.0;
  CHECK(cpu_quota(f, kT).verdict == Verdict::clear);
  f.host.throttled_ratio = 0.09;
  CHECK(cpu_quota(f, kT).verdict == Verdict::clear);
}

TEST_CASE("no quota, or one above the mask, is clear; one that cannot be read is not measured") {
  Features f = throttled_container();
  f.host.quota_cores = 12.0;
  CHECK(cpu_quota(f, kT).verdict == Verdict::clear);
  f.host.quota_cores.reset();
  CHECK(cpu_quota(f, kT).verdict == Verdict::clear);
  f.host.quotas_known = false;
  CHECK(cpu_quota(f, kT).reason == "CPU quotas of the control groups not read");
  f = throttled_container();
  f.host.throttled_ratio.reset();
  CHECK(cpu_quota(f, kT).reason == "throttling by the CPU quota not measured");
  f.host.mask_cores.reset();
  CHECK(cpu_quota(f, kT).verdict == Verdict::not_measured);
}

TEST_CASE("stops of the host that a device may hide promise nothing for sure") {
  Features f = throttled_container();
  f.device_is_host = false;
  CHECK(cpu_quota(f, kT).finding->gain_ratio.low == 0);
  set_wait(f, 0.3);
  CHECK(cpu_quota(f, kT).finding->gain_ratio.low > 0);
}

// ---- affinity_mask

TEST_CASE("workers on fewer CPUs than the trainer may use are found, and the loader is not blamed") {
  const Features f = workers_on_one_cpu();
  const RuleResult result = affinity_mask(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  // Twice the CPUs for the workers; the job as a whole uses 1.08 of 2.
  CHECK(finding.gain_ratio.high == doctest::Approx(1 - 1.08 / 2));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.6 * (1 - 1.08 / 2)));
  CHECK(1 - 0.91 / 1.70 == doctest::Approx(finding.gain_ratio.high).epsilon(0.02));  // measured
  CHECK(finding.remedies == Names{"worker_affinity"});
  CHECK(says(finding, "2 workers are pinned to 1 of the 2 CPUs"));
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::clear);
  CHECK(too_few_cpus(f, kT).verdict == Verdict::clear);
}

TEST_CASE("workers with a CPU each lack nothing, and neither do workers that leave theirs idle") {
  Features f = workers_on_one_cpu();
  f.worker_mask_cores = 2.0;
  CHECK(affinity_mask(f, kT).verdict == Verdict::clear);
  f = workers_on_one_cpu();
  f.host.worker_cores = 0.5;
  f.workers[0].cores = f.workers[1].cores = 0.25;
  CHECK(affinity_mask(f, kT).verdict == Verdict::clear);
  CHECK(input_cpu_bound(f, kT).verdict != Verdict::not_measured);
}

TEST_CASE("pinned workers that share their CPU with others want more than they get, and are found") {
  Features f = workers_on_one_cpu();
  f.host.worker_cores = 0.7;
  f.workers = {{101, 0.35, 0.02, 0.5, 1}, {102, 0.35, 0.02, 0.5, 1}};
  CHECK(affinity_mask(f, kT).verdict == Verdict::found);
  CHECK(input_cpu_bound(f, kT).verdict == Verdict::clear);
}

TEST_CASE("more than one rank gets no remedy for its workers' masks") {
  Features f = workers_on_one_cpu();
  f.ranks = 2;
  CHECK(affinity_mask(f, kT).finding->remedies.empty());
}

Features pinned_process() {
  Features f = photographs_with_workers();
  f.host.cpu_budget_cores = f.host.mask_cores = f.worker_mask_cores = 1.0;
  f.host.cpu_budget_source = "affinity mask 0";
  f.host.allowed_cores = f.host.inherited_cores = 8.0;
  f.host.own_cores = 0.3;
  f.host.worker_cores = 0.68;
  f.workers = {{101, 0.34, 0.02}, {102, 0.34, 0.02}};
  return f;
}

TEST_CASE("a process narrowed after it began says so, and its workers may be widened") {
  Features f = pinned_process();
  f.host.worker_cores = 0.95;  // the workers fill the one CPU
  const RuleResult workers = affinity_mask(f, kT);
  REQUIRE(workers.verdict == Verdict::found);
  CHECK(says(*workers.finding, "2 workers are pinned to 1 of the 8 CPUs"));

  const RuleResult result = affinity_mask(pinned_process(), kT);  // trainer and workers share it
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(says(finding, "pinned to 1 of 8 CPUs"));
  CHECK(says(finding, "it came with 8"));
  CHECK(finding.remedies == Names{"worker_affinity"});
  CHECK(finding.gain_ratio.high == doctest::Approx(0.45));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.6 * 0.45));
}

TEST_CASE("a mask that came from outside is advice") {
  Features f = pinned_process();
  f.host.inherited_cores = 1.0;
  const RuleResult result = affinity_mask(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "--cpus-per-task"));
}

TEST_CASE("a quota as tight as the mask, or a mask with room, makes the mask no cause") {
  Features f = pinned_process();
  f.host.inherited_cores = 1.0;
  f.host.quota_cores = 1.0;
  CHECK(affinity_mask(f, kT).verdict == Verdict::clear);
  f = pinned_process();
  f.host.inherited_cores = 1.0;
  f.host.worker_cores = 0.4;
  CHECK(affinity_mask(f, kT).verdict == Verdict::clear);
}

TEST_CASE("without input to wait for, a mask may cost what operators could share, and perhaps none") {
  Features f = pinned_process();
  set_wait(f, 0);
  f.operator_seconds = 0.5 * f.step_seconds_p50;
  const GainRange gain = affinity_mask(f, kT).finding->gain_ratio;
  CHECK(gain.low == 0);
  CHECK(gain.high == doctest::Approx(0.5 * (1 - 1.0 / 8)));
  f.device_is_host = false;
  CHECK(affinity_mask(f, kT).verdict == Verdict::clear);
}

TEST_CASE("masks that were not read are not measured") {
  Features f = workers_on_one_cpu();
  f.worker_mask_cores.reset();
  CHECK(affinity_mask(f, kT).reason == "CPU masks of the loader's workers not read");
  f = workers_on_one_cpu();
  f.host.mask_cores.reset();
  CHECK(affinity_mask(f, kT).verdict == Verdict::not_measured);
}

// ---- foreign_cpu_load

TEST_CASE("others on our CPUs are named with what they take, and the loader is not") {
  const RuleResult result = foreign_cpu_load(crowded_machine(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.gain_ratio.high == doctest::Approx(0.9 / 2));
  // 40 % of the time in the run queue, 0.9 of the 2.3 CPUs in use being theirs.
  CHECK(finding.gain_ratio.low == doctest::Approx(0.4 * 0.9 / (0.9 + 1.4)));
  CHECK(finding.remedies.empty());
  CHECK(finding.where.empty());
  CHECK(says(finding, "other programs take 0.9 of this job's 2 CPUs"));
}

TEST_CASE("others below the controller's line, or beside idle CPUs, cost nothing") {
  Features f = crowded_machine();
  f.host.crowding_cores = 0.19;
  CHECK(foreign_cpu_load(f, kT).verdict == Verdict::clear);
  f = crowded_machine();
  f.host.cpu_budget_cores = 8.0;
  f.host.run_queue_wait_ratio = 0.01;
  CHECK(foreign_cpu_load(f, kT).verdict == Verdict::clear);
}

TEST_CASE("input that sleeps, or a device that computes, does not feel others") {
  Features f = object_store_with_two_workers();
  f.host.crowding_cores = 1.8;
  f.device_is_host = false;
  CHECK(foreign_cpu_load(f, kT).verdict == Verdict::clear);
  f = crowded_machine();
  f.device_is_host = false;
  CHECK(foreign_cpu_load(f, kT).verdict == Verdict::clear);
}

TEST_CASE("behind a device no more than the wait for CPU work is theirs") {
  Features f = photographs_with_workers();
  f.device_is_host = false;
  f.host.crowding_cores = 1.2;
  set_wait(f, 0.2);
  const RuleResult result = foreign_cpu_load(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(result.finding->gain_ratio.high == doctest::Approx(0.2));
  CHECK(says(*result.finding, "alternatives, not a sum"));
}

TEST_CASE("time in the run queue counts for as long as somebody computes or is waited for") {
  Features f = photographs_with_workers();
  f.host.crowding_cores = 1.0;
  set_wait(f, 0.8);
  f.host.own_cores = 0.1;
  f.host.worker_cores = 0.9;
  f.host.run_queue_wait_ratio = 0.5;
  f.workers = {{101, 0.45, 0.05, 0.4, 1}, {102, 0.45, 0.05, 0.4, 1}};
  // The trainer queues as long as it computes, its workers 40 % of the wait; half of it is theirs.
  CHECK(foreign_cpu_load(f, kT).finding->gain_ratio.low == doctest::Approx(0.5 * (0.1 + 0.8 * 0.4)));
  f.worker_mask_cores = 1.0;  // the workers stand in each other's way
  CHECK(foreign_cpu_load(f, kT).finding->gain_ratio.low == doctest::Approx(0.5 * 0.1));
}

TEST_CASE("others that were not measured are not zero") {
  Features f = crowded_machine();
  f.host.crowding_cores.reset();
  CHECK(foreign_cpu_load(f, kT).reason == "CPU use of other programs not measured");
}

// ---- main_threads

TEST_CASE("threads beside busy workers on too few CPUs: one is advised, within what was measured") {
  Features f = photographs_with_workers();
  f.main_threads = 2;
  f.host.run_queue_wait_ratio = 0.3;
  f.host.own_cores = 0.95;  // two threads, one of them spinning half of the time
  f.host.worker_cores = 1.0;
  const RuleResult result = main_threads(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(finding.remedies == Names{"main_threads"});
  CHECK(evidence_of(finding, "threads_advised")->value == 1);
  CHECK(finding.gain_ratio.low == doctest::Approx(0.6 * 0.3));
  const double measured = 1 - 91.0 / 133;
  CHECK(measured >= finding.gain_ratio.low);
  CHECK(measured <= finding.gain_ratio.high);
  f.host.own_cores = 0.03;  // threads that hardly run waste nothing
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
}

TEST_CASE("threads that fit, or that nobody waits for, are left alone") {
  Features f = photographs_with_workers();
  CHECK(main_threads(f, kT).verdict == Verdict::clear);  // one thread
  f.main_threads = 2;
  f.host.cpu_budget_cores = 4.0;
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
  f = healthy_loop();
  f.main_threads = 4;  // asleep: 1.4 of 2 CPUs used, nobody queues
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
  f.device_is_host = false;
  f.host.run_queue_wait_ratio = 0.5;
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
}

TEST_CASE("one thread beside idle CPUs in a step of operators is worth a try") {
  const RuleResult result = main_threads(one_thread_on_four_cpus(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  CHECK(evidence_of(finding, "threads_advised")->value == 3);  // the workers want 0.4 of 4
  CHECK(finding.gain_ratio.low == doctest::Approx(0.8 * (1 - 1 / 1.1)));
  CHECK(finding.gain_ratio.high == doctest::Approx(0.8 * (1 - 1.0 / 3)));
  CHECK(says(finding, "80 % of the step is spent inside operators"));
}

TEST_CASE("one thread is right for Python, for short steps, for input and where others compute") {
  Features f = one_thread_on_four_cpus();
  f.operator_seconds = 0.04;
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
  f = one_thread_on_four_cpus();
  f.step_seconds_p50 = 0.004;
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
  f = one_thread_on_four_cpus();
  set_wait(f, 0.2);
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
  f = one_thread_on_four_cpus();
  f.host.crowding_cores = 2.5;
  CHECK(main_threads(f, kT).verdict == Verdict::clear);
}

TEST_CASE("what threads could share, or who shares the CPUs, is asked before one is too few") {
  Features f = one_thread_on_four_cpus();
  f.operator_seconds.reset();
  CHECK(main_threads(f, kT).reason == "time inside operators not seen");
  f = one_thread_on_four_cpus();
  f.ranks = 4;
  CHECK(main_threads(f, kT).verdict == Verdict::not_measured);
  f.main_threads = 0;
  CHECK(main_threads(f, kT).reason == "number of intra-op threads not known");
}

// ---- worker_threads

TEST_CASE("workers that want two CPUs each on two CPUs are told by CPU time, not by thread count") {
  const RuleResult result = worker_threads(nested_threads(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  const double total = 2 * 0.75 / (1 - 0.6) + 0.48;
  CHECK(finding.gain_ratio.high == doctest::Approx(1 - 2 / total));
  CHECK(finding.gain_ratio.low == doctest::Approx(0.09 * (1 - 2 / total)));
  CHECK(finding.remedies.empty());
  CHECK(says(finding, "a worker has 4 threads"));
  CHECK(says(finding, "one is not always best"));
  // The three that were measured with two workers on two cores: 2, 8 and 16 threads each.
  for (const auto& [threads, saved] :
       {std::pair{2.0, 1 - 2.4 / 3.6}, {8.0, 1 - 2.4 / 2.7}, {16.0, 1 - 2.4 / 2.6}}) {
    const double most = 1 - 2 / (2 * threads);
    CHECK(saved <= most);
    CHECK(saved >= kT.nested_threads_reached * most - 0.01);
  }
}

TEST_CASE("pools that sleep, and threads that have CPUs of their own, are no finding") {
  Features f = nested_threads();
  for (WorkerLoad& worker : f.workers) worker.run_queue_wait_ratio = 0.02;
  CHECK(worker_threads(f, kT).verdict == Verdict::clear);  // 4 threads, 0.77 of a CPU
  f = nested_threads();
  f.host.cpu_budget_cores = 8.0;
  CHECK(worker_threads(f, kT).verdict == Verdict::clear);
  f.loader->workers = 0;
  CHECK(worker_threads(f, kT).verdict == Verdict::clear);
}

TEST_CASE("workers whose CPU time is not known are not measured") {
  Features f = nested_threads();
  f.workers[1].cores.reset();
  CHECK(worker_threads(f, kT).reason == "CPU time of the loader's workers not measured");
  f.workers.clear();
  CHECK(worker_threads(f, kT).verdict == Verdict::not_measured);
  f.loader.reset();
  CHECK(worker_threads(f, kT).reason == "no DataLoader seen");
}

// ---- shm_small

TEST_CASE("batches in flight that need most of a container's 64 MB are a danger, not lost time") {
  const RuleResult result = shm_small(container_shared_memory(), kT);
  REQUIRE(result.verdict == Verdict::found);
  const Finding& finding = *result.finding;
  // 2 workers, 2 batches each and one in the making, 10 MB a batch.
  CHECK(evidence_of(finding, "in_flight_bytes")->value == doctest::Approx(60e6));
  CHECK(finding.gain_ratio.high == 0);
  CHECK(severity(finding) == Severity::warning);
  CHECK(says(finding, "--shm-size"));
  Features f = container_shared_memory();
  f.loader->batch_bytes = 12'000'000;
  CHECK(severity(*shm_small(f, kT).finding) == Severity::critical);
}

TEST_CASE("shared memory that is nearly full is a danger whatever a batch takes") {
  Features f = container_shared_memory();
  f.loader->batch_bytes.reset();
  f.host.shm_free_bytes = 3e6;
  const RuleResult result = shm_small(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(severity(*result.finding) == Severity::critical);
  CHECK(says(*result.finding, "3 MB of the 67.1 MB"));
}

TEST_CASE("room for the batches is clear; room for batches of unknown size only where it is plenty") {
  Features f = container_shared_memory();
  f.loader->batch_bytes = 5'000'000;
  CHECK(shm_small(f, kT).verdict == Verdict::clear);
  f.loader->batch_bytes.reset();
  CHECK(shm_small(f, kT).reason == "bytes of a batch not seen yet");
  f.host.shm_free_bytes = 60e6;
  CHECK(shm_small(f, kT).verdict == Verdict::clear);
  f.host.shm_free_bytes.reset();
  CHECK(shm_small(f, kT).reason == "space in /dev/shm not read");
  f.loader->workers = 0;
  CHECK(shm_small(f, kT).verdict == Verdict::clear);
}

// ---- fd_limit

TEST_CASE("half of the descriptors open is a warning with a remedy, nine tenths are critical") {
  Features f = healthy_loop();
  f.host.open_descriptors = 511;
  CHECK(fd_limit(f, kT).verdict == Verdict::clear);
  f.host.open_descriptors = 512;
  const RuleResult result = fd_limit(f, kT);
  REQUIRE(result.verdict == Verdict::found);
  CHECK(severity(*result.finding) == Severity::warning);
  CHECK(result.finding->gain_ratio.high == 0);
  CHECK(result.finding->remedies == Names{"fd_limit"});
  CHECK(says(*result.finding, "the hard limit is 4096"));
  f.host.open_descriptors = 922;
  CHECK(severity(*fd_limit(f, kT).finding) == Severity::critical);
}

TEST_CASE("at the hard limit there is advice; without a limit or a count there is nothing to say") {
  Features f = healthy_loop();
  f.host.open_descriptors = 1000;
  f.host.descriptor_hard_limit = 1024;
  const RuleResult result = fd_limit(f, kT);
  CHECK(result.finding->remedies.empty());
  CHECK(says(*result.finding, "LimitNOFILE"));
  f.host.descriptor_hard_limit = std::numeric_limits<double>::infinity();
  CHECK(fd_limit(f, kT).finding->remedies == Names{"fd_limit"});
  f.host.descriptor_limit = std::numeric_limits<double>::infinity();
  CHECK(fd_limit(f, kT).verdict == Verdict::clear);
  f.host.open_descriptors.reset();
  CHECK(fd_limit(f, kT).verdict == Verdict::not_measured);
}

}  // namespace
}  // namespace gpuutil
