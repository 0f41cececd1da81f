#include "collect/cpu_budget.h"

#include <utility>

namespace gpuutil {
namespace {

struct Mask {
  Reading<CpuSet> cpus;
  std::string source;
};

// The kernel keeps a mask inside its CPU set, so the set says more only where the mask cannot be
// read.
Mask read_mask(FileReader& reader, const CgroupLocations& locations) {
  Reading<CpuSet> affinity = read_affinity(reader);
  if (affinity && !affinity->empty()) return {affinity, "affinity mask " + affinity->to_list()};
  Reading<CpuSet> cpuset = read_cgroup_cpuset(reader, locations.cpuset);
  if (cpuset && !cpuset->empty()) return {cpuset, "cgroup CPU set " + cpuset->to_list()};
  Reading<CpuSet> online = read_online_cpus(reader);
  if (online && !online->empty()) return {online, "CPUs switched on " + online->to_list()};
  if (affinity) affinity = Unknown{ReadState::inconsistent, "/proc/self/status: an empty CPU mask"};
  return {affinity, ""};
}

}  // namespace

std::optional<double> CpuBudget::mask_cores() const {
  if (!mask) return std::nullopt;
  return mask->count();
}

CpuBudget read_cpu_budget(FileReader& reader, const CgroupLocations& locations) {
  CpuBudget budget;
  Mask mask = read_mask(reader, locations);
  budget.mask = std::move(mask.cpus);
  budget.cgroup = read_cgroup_cpu(reader, locations.cpu);
  budget.cores = budget.mask_cores();
  budget.source = std::move(mask.source);
  if (!budget.mask) budget.reason = budget.mask.reason;
  if (budget.cgroup.gap) {
    if (!budget.reason.empty()) budget.reason += "; ";
    budget.reason += budget.cgroup.gap.reason;
  }
  const CpuQuota* quota = budget.cgroup.tightest();
  if (quota && (!budget.cores || quota->cores < *budget.cores)) {
    budget.cores = quota->cores;
    budget.source =
        "cgroup v" + std::to_string(budget.cgroup.version) + " quota at " + quota->level;
  }
  return budget;
}

CpuBudget read_cpu_budget(FileReader& reader) {
  return read_cpu_budget(reader, locate_cgroups(reader));
}

}  // namespace gpuutil
