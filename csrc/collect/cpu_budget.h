// How many CPUs this process may use: min(CPUs in the mask, every cgroup quota above us). To be
// known before anybody names or touches the loader. Never the number of CPUs of the machine, unless
// nothing else can be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/affinity.h"
#include "collect/cgroup.h"
#include "collect/cgroup_path.h"
#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct CpuBudget {
  std::optional<double> cores;  // quotas come in fractions
  // What set it, for people: "affinity mask 0-3", "cgroup v2 quota at PATH".
  std::string source;
  // Why cores is unknown, or what could not be read and might be tighter; else empty.
  std::string reason;
  Reading<CpuSet> mask;  // the CPUs that we may run on
  CgroupCpu cgroup;  // every quota, with throttling

  std::optional<double> mask_cores() const;
};

CpuBudget read_cpu_budget(FileReader& reader, const CgroupLocations& locations);
CpuBudget read_cpu_budget(FileReader& reader);

}  // namespace gpuutil
