#include "collect/cpu_shares.h"

#include <algorithm>
#include <cmath>

namespace gpuutil {
namespace {

Reading<double> foreign_jiffies(const CpuUse& machine, int64_t ours, double rounding) {
  const auto foreign = static_cast<double>(machine.jiffies.busy - ours);
  if (foreign >= 0) return foreign;
  // Some kernels charge a process for time that the hypervisor took while it ran, and the machine's
  // busy count never has that time: stolen time explains a deficit as rounding does.
  if (-foreign <= 4 * rounding + static_cast<double>(machine.steal.value_or(0))) return 0.0;
  return Unknown{ReadState::inconsistent,
                 "our processes used more CPU time than the CPUs in our mask were busy"};
}

}  // namespace

double crowding_cores(double foreign_cores, double mask_cores, double budget_cores) {
  return std::max(0.0, foreign_cores - std::max(0.0, mask_cores - budget_cores));
}

CpuShares cpu_shares(const Reading<CpuUse>& machine, const Reading<TreeUse>& ours,
                     std::optional<double> budget_cores, double interval_seconds,
                     bool descendants_complete, int64_t jiffies_per_second) {
  const double jiffies_per_interval = interval_seconds * static_cast<double>(jiffies_per_second);
  const auto cores = [&](const auto& jiffies) -> Reading<double> {
    if (!jiffies) return jiffies.unknown();
    return static_cast<double>(*jiffies) / jiffies_per_interval;
  };
  CpuShares shares;
  if (ours) {
    shares.own = cores(ours->own);
    shares.workers = cores(ours->workers);
    shares.other_children = cores(ours->other_children);
  } else {
    shares.own = shares.workers = shares.other_children = ours.unknown();
  }
  if (machine) {
    shares.interrupt = cores(Reading(machine->jiffies.interrupt));
    shares.iowait = cores(Reading(machine->jiffies.iowait));
    shares.steal = machine->steal ? cores(Reading(*machine->steal))
                                  : Reading<double>(Unknown{ReadState::inconsistent,
                                                            "/proc/stat: stolen time went back"});
  } else {
    shares.interrupt = shares.iowait = shares.steal = shares.foreign = shares.crowding =
        machine.unknown();
  }
  if (!machine || !ours || !ours->total) {
    if (machine) shares.foreign = ours ? ours->total.unknown() : ours.unknown();
    shares.crowding = shares.foreign;
    return shares;
  }
  const double rounding = std::sqrt(static_cast<double>(ours->counters + machine->cpus));
  shares.resolution = rounding / jiffies_per_interval;
  shares.foreign = cores(foreign_jiffies(*machine, *ours->total, rounding));
  shares.foreign_is_upper_bound = !descendants_complete;
  if (!shares.foreign) {
    shares.crowding = shares.foreign;
  } else if (!budget_cores) {
    shares.crowding = Unknown{ReadState::absent, "the CPU budget is unknown"};
  } else {
    shares.crowding = crowding_cores(*shares.foreign, machine->cpus, *budget_cores);
  }
  return shares;
}

}  // namespace gpuutil
