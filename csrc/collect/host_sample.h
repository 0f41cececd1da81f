// One look at the host: what it gives us and who used it since the look before. Plain data, any
// thread. What was not measured has a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/affinity.h"
#include "collect/cpu_budget.h"
#include "collect/cpu_shares.h"
#include "collect/descriptors.h"
#include "collect/memory_budget.h"
#include "collect/reading.h"
#include "collect/worker_watch.h"

namespace gpuutil {

struct WorkerSample {
  int32_t pid = 0;
  bool alive = false;
  Reading<double> cores;
  StateLooks states;                     // of all looks since the sample before
  std::optional<int32_t> threads;
  Reading<int64_t> rss_bytes;            // includes pages shared with the parent
  Reading<double> run_queue_wait_ratio;  // of the time in which it could run
  Reading<CpuSet> cpus;                  // that its main thread may run on
};

// Shares of the interval in which at least one task waited.
struct PressureSample {
  Reading<double> cpu;
  Reading<double> io;
  Reading<double> memory;
};

struct HostSample {
  int64_t time_ns = 0;                     // of CLOCK_MONOTONIC, as given
  std::optional<double> interval_seconds;  // nothing in the first sample: it has no rates
  CpuBudget cpu_budget;
  Reading<CpuSet> allowed_cpus;            // switched on and in the CPU set of our group
  CpuShares cpu;
  std::vector<WorkerSample> workers;       // as asked for, in that order
  int32_t other_children = 0;              // living descendants that are no workers
  Reading<int32_t> threads;                // of our own process
  Reading<double> run_queue_wait_ratio;    // of our own threads
  Reading<double> throttled_ratio;  // scheduler periods in which a quota above us was used up
  PressureSample machine_pressure;
  PressureSample cgroup_pressure;  // of our own group
  MemoryBudget memory;
  Reading<int64_t> rss_bytes;  // of our own process
  Reading<ShmSpace> shm;
  Reading<Descriptors> descriptors;
};

}  // namespace gpuutil
