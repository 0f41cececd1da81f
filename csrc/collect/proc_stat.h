// What each CPU of the machine has been doing since boot (/proc/stat), and the difference of two
// such readings over a set of CPUs. Counts in jiffies of 1/CLK_TCK second (10 ms), so a difference
// is good to about one jiffy a CPU. In a container these are still the whole machine's counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collect/affinity.h"
#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct CpuTimes {
  int32_t cpu = 0;
  int64_t busy = 0;       // user, nice, system, irq and softirq; guests are inside user
  int64_t interrupt = 0;  // irq and softirq alone
  int64_t idle = 0;       // without iowait
  int64_t iowait = 0;
  int64_t steal = 0;      // the hypervisor ran somebody else; not in busy
};

struct ProcStat {
  std::vector<CpuTimes> cpus;  // those switched on
};

struct CpuUse {
  CpuTimes jiffies;  // summed over the CPUs
  int32_t cpus = 0;  // in the mask and in both readings
  std::optional<int64_t> steal;  // hypervisors let it go back, which leaves no answer
};

Reading<ProcStat> parse_proc_stat(std::string_view text);
Reading<ProcStat> read_proc_stat(FileReader& reader);

// Unknown where the mask names no CPU of these readings, where a busy counter went back, and where
// all counters stand still (emulated kernels print zeros).
Reading<CpuUse> cpu_use(const ProcStat& before, const ProcStat& after, const CpuSet& mask);

}  // namespace gpuutil
