// Reads the host once in a while and makes rates of it. Owns the readings of the last sample. One
// thread at a time (the engine's own, 1-4 times a second); every call ends without an exception,
// and what failed is unknown with a reason. Changes nothing: no mask, no priority, no group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/cgroup_path.h"
#include "collect/file_reader.h"
#include "collect/host_sample.h"
#include "collect/memory_budget.h"
#include "collect/pressure.h"
#include "collect/process_tree.h"
#include "collect/worker_watch.h"

namespace gpuutil {

struct HostSamplerOptions {
  std::string root = "/";
  int32_t pid = 0;                 // of this process, as the caller knows it; 0: getpid()
  int64_t jiffies_per_second = 0;  // 0: sysconf(_SC_CLK_TCK)
  StatFilesystem stat_filesystem = ::statvfs;
};

class HostSampler {
 public:
  explicit HostSampler(HostSamplerOptions options = {});

  // `time_ns` of CLOCK_MONOTONIC. `worker_pids`: the loader's worker processes at this time.
  HostSample sample(int64_t time_ns, const std::vector<int32_t>& worker_pids) noexcept;

  // One more look at what the workers that lived in the last sample are doing, for the shares of
  // the next.
  void poll_states() noexcept;

 private:
  struct Queues {
    int32_t pid = 0;
    int64_t start_jiffies = 0;
    std::vector<ThreadQueue> threads;
  };
  struct Last {
    int64_t time_ns = 0;
    Reading<ProcStat> machine;
    Reading<ProcessTree> tree;
    std::vector<Queues> queues;
    CgroupCpu cgroup;
    Pressure machine_pressure;
    Pressure cgroup_pressure;
  };

  HostSample read(int64_t time_ns, const std::vector<int32_t>& worker_pids);
  void follow_cgroup();
  Last read_now(int64_t time_ns, const std::vector<int32_t>& worker_pids);
  Reading<ProcessTree> read_tree(const std::vector<int32_t>& worker_pids);
  std::vector<Queues> read_queues(const ProcessTree& tree);
  void fill_rates(const Last& now, const Reading<TreeUse>& use, HostSample& sample) const;
  WorkerSample worker_sample(const Last& now, const Reading<TreeUse>& use,
                             const Reading<CpuSet>& online, int32_t pid);
  Reading<double> queue_wait(const Last& now, int32_t pid) const;
  // Why there are no rates yet.
  Unknown no_rates() const;

  HostSamplerOptions options_;
  FileReader reader_;
  WorkerWatch watch_;
  CgroupLocations cgroups_;
  std::optional<std::string> cgroup_text_;  // of which cgroups_ was made
  std::optional<Last> last_;
  size_t turn_ = 0;
};

}  // namespace gpuutil
