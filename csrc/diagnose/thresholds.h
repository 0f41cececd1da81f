// Every number that a rule compares with, each with its reason. Shares are of the step unless said
// otherwise. Passed to the rules, so that a test can move one; nothing else in diagnose/ holds a
// number that decides.
#pragma once

#include <cstdint>

namespace gpuutil {

struct Thresholds {
  // Evidence floors. Eight steps is also what the fast path of the controller asks of each arm
  // (DESIGN 8); a window of 40 is where the interval on a median stops being the main doubt.
  int64_t min_steps = 8;
  int64_t full_steps = 40;
  // Sampled steps are few by design: three tell a habit from an accident, ten settle it.
  int64_t min_sampled_steps = 3;
  int64_t full_sampled_steps = 10;

  // A wait for input below a twentieth is what a healthy loader costs: taking a batch from a queue.
  // The profiler's old TensorBoard page warned at the same share, today's live tools at a tenth and
  // a fifth.
  double input_wait_ratio = 0.05;
  // A cause is worth naming where its high end reaches the smallest gain that a trial can confirm
  // (DESIGN 8).
  double min_gain_ratio = 0.02;

  // CPU time over wall time inside the input work: above one half it is CPU work, below it is
  // waiting.
  double cpu_work_share = 0.5;
  // Waits in bursts (median under a third of the mean) come from uneven items: what workers do on
  // average says less about them.
  double burst_median_over_mean = 1.0 / 3;
  double burst_confidence = 0.6;

  // The budget counts as used up from 90 %: scheduling never fills the last tenth. A quota used
  // up in a tenth of its periods says the same.
  double budget_used_ratio = 0.9;
  double throttled_ratio = 0.1;
  // Share of the time in which our threads could run that they waited for a CPU; a tenth is a
  // crowded machine.
  double run_queue_wait_ratio = 0.1;
  // The controller's own line for foreign load (DESIGN 8).
  double foreign_cores = 0.2;

  // What of the bound was reached where it was measured. Two cores, photographs decoded by two
  // workers, one main thread: 0.60 and 0.80 of what the CPU ceiling allows. Items that sleep, eight
  // workers: 0.91.
  double cpu_bound_reached = 0.6;
  double latency_bound_reached = 0.8;
  // One worker beside the training thread hides the shorter of the two: never more than half of the
  // step.
  double one_worker_reached = 0.5;

  // An item that is only a row of something takes a few microseconds; from twenty on it is work of its own.
  double plain_row_seconds = 20e-6;
  // A collate below a quarter of a fetch is not what the fetch is about.
  double collate_ratio = 0.25;
  // Batches timed early stand for all; half a dozen of them are a look, not a measurement.
  double fetch_cost_reached = 0.7;
  double fetch_cost_confidence = 0.8;
  // The first turn of a run may be one of a kind; two agree, six settle it.
  int32_t min_turns = 2;
  int32_t full_turns = 6;

  // The residual is Python in gaps that the observer itself stretches: below a twentieth it is not
  // named.
  double host_python_ratio = 0.05;

  // A stop by the quota falls on time that waited for something else as often as not: half of the
  // time stopped is promised.
  double throttle_reached = 0.5;

  // Main threads beside two workers on two cores: 133 ms a step with two of them, 91 with one, 0.63
  // of what the CPUs that are missing would explain.
  double main_threads_reached = 0.6;
  // A trainer that burns less than a tenth of the budget has threads that sleep.
  double least_burnt_ratio = 0.1;
  // Two threads made small networks 1.1 to 1.9 times as fast as one.
  double second_thread_speedup = 1.1;
  // Threads share the work inside operators and nothing else: below half of the step in operators,
  // or in steps of a few milliseconds (made of operators too small to be split), one thread is right.
  double operator_ratio = 0.5;
  double threads_step_seconds = 5e-3;
  // A worker with one thread wants one CPU, the thread that sends its batches a few percent of
  // another: from a quarter more on a second thread computes.
  double worker_demand_cores = 1.25;
  // Two workers on two cores: 2, 8 and 16 threads in each cost 33, 11 and 8 % against one, 0.66,
  // 0.13 and 0.09 of what the CPUs that are missing would explain.
  double nested_threads_reached = 0.09;

  // Shared memory: batches come unevenly large, and other programs use it too, so half of it is
  // what batches in flight may fill. The last tenth is a crash (bus error) about to happen. Three
  // quarters free while batches are in flight need no further look.
  double shm_ratio = 0.5;
  double shm_least_free_ratio = 0.1;
  double shm_plenty_free_ratio = 0.75;
  // Descriptors swing with the batches in flight: half of the limit is one doubled queue away from
  // it, nine tenths are a crash about to happen.
  double descriptor_ratio = 0.5;
  double descriptor_danger_ratio = 0.9;
};

inline constexpr Thresholds kThresholds{};

}  // namespace gpuutil
