// Pressure stall totals of the machine (/proc/pressure/) or of a cgroup (v2): the time in which
// tasks that could have worked waited for a CPU, for I/O or for memory. Only totals are kept: a
// ratio is a difference of two, over our own interval, not the kernel's running average.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct PressureTotals {
  int64_t some_us = 0;                // at least one task waited
  std::optional<int64_t> full_us;     // all tasks did; older kernels do not tell for CPUs
};

struct Pressure {
  Reading<PressureTotals> cpu;
  Reading<PressureTotals> io;
  Reading<PressureTotals> memory;
};

Reading<PressureTotals> parse_pressure(std::string_view text);
Pressure read_system_pressure(FileReader& reader);
// `folder`: the cgroup's folder in the v2 tree, as seen inside the root.
Pressure read_cgroup_pressure(FileReader& reader, const std::string& folder);

// Share of the interval in which at least one task waited.
Reading<double> some_ratio(const Reading<PressureTotals>& before,
                           const Reading<PressureTotals>& after, double interval_seconds);

}  // namespace gpuutil
