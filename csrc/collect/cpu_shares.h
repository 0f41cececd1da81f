// Who used the CPUs of our mask in an interval, in cores (CPU seconds per second): we, the loader's
// workers, our other children, or somebody else. Pure: two readings' differences in, shares out.
#pragma once

#include <cstdint>
#include <optional>

#include "collect/proc_stat.h"
#include "collect/process_tree.h"
#include "collect/reading.h"

namespace gpuutil {

struct CpuShares {
  Reading<double> own;  // this process without its children
  Reading<double> workers;
  Reading<double> other_children;  // includes whatever ended in the interval
  Reading<double> foreign;  // busy in our mask and not ours; interrupts of the machine are in it
  Reading<double> crowding;  // the part of foreign that takes from our budget
  // Within our mask, whoever caused them. Part of foreign, or of the share of whom they hit.
  Reading<double> interrupt;
  Reading<double> iowait;
  Reading<double> steal;  // taken by the hypervisor; in nobody's share
  // Descendants may be missing from ours, so foreign may hold some of our own.
  bool foreign_is_upper_bound = false;
  // What rounding alone makes of foreign: an error of a jiffy in each counter that went into it,
  // added as independent errors are. A negative difference of up to four times this counts as 0, a
  // larger one as unknown.
  std::optional<double> resolution;
};

// On a machine with more CPUs in our mask than our quota lets us use, others' use of the surplus
// costs us nothing.
double crowding_cores(double foreign_cores, double mask_cores, double budget_cores);

CpuShares cpu_shares(const Reading<CpuUse>& machine, const Reading<TreeUse>& ours,
                     std::optional<double> budget_cores, double interval_seconds,
                     bool descendants_complete, int64_t jiffies_per_second = 100);

}  // namespace gpuutil
