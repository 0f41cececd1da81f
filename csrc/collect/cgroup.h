// What the control groups above us allow: CPU quotas, CPU sets and memory limits of EVERY level
// from our group up to the root of the mount (a limit three levels up binds as hard as our own),
// with use and throttling of the levels that have a limit. A level without the file has no limit; a
// level whose file cannot be read is a gap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/affinity.h"
#include "collect/cgroup_path.h"
#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct Throttling {
  int64_t periods = 0;  // scheduler periods in which the group ran
  int64_t throttled = 0;  // of those, in which it used its quota up
  int64_t throttled_ns = 0;  // time stopped, summed over CPUs
};

struct CpuQuota {
  double cores = 0;
  std::string level;
  Reading<Throttling> throttling;
};

struct CgroupCpu {
  int version = 0;
  std::vector<CpuQuota> quotas;  // of the levels that have one, ours first
  Gap gap;  // levels that could not be read or seen, and may have a tighter one

  const CpuQuota* tightest() const;
};

struct MemoryLimit {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;
  // File cache not used lately: counted as used, given back when needed.
  int64_t reclaimable_bytes = 0;
  std::string level;

  int64_t headroom_bytes() const;
};

struct CgroupMemory {
  std::vector<MemoryLimit> limits;
  Gap gap;

  const MemoryLimit* tightest() const;  // the one with the least headroom
};

CgroupCpu read_cgroup_cpu(FileReader& reader, const Reading<CgroupLocation>& location);
CgroupMemory read_cgroup_memory(FileReader& reader, const Reading<CgroupLocation>& location);
// The CPUs that the nearest level with a CPU set leaves us.
Reading<CpuSet> read_cgroup_cpuset(FileReader& reader, const Reading<CgroupLocation>& location);

// Throttled periods / periods between two readings, of the level where it is highest. 0 where no
// level has a quota or none ran; unknown where a level could not be read.
Reading<double> throttled_ratio(const CgroupCpu& before, const CgroupCpu& after);

}  // namespace gpuutil
