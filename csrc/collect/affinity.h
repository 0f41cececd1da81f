// Which logical CPUs a process may run on, and the kernel's list notation for sets of CPUs
// ("0-3,8,10-11"). Only looks: never widens or narrows a mask.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

class CpuSet {
 public:
  static constexpr int32_t kMaxCpu = 16383;

  void add(int32_t cpu);
  bool contains(int32_t cpu) const;
  int32_t count() const;
  bool empty() const { return count() == 0; }
  CpuSet intersect(const CpuSet& other) const;
  CpuSet unite(const CpuSet& other) const;
  std::string to_list() const;
  bool operator==(const CpuSet& other) const { return to_list() == other.to_list(); }

 private:
  std::vector<uint64_t> words_;
};

// An empty text is the empty set, as the kernel writes it.
Reading<CpuSet> parse_cpu_list(std::string_view text);

// CPUs that are switched on: /sys/devices/system/cpu/online.
Reading<CpuSet> read_online_cpus(FileReader& reader);

// CPUs that could be ours if nobody narrowed our mask: those that are switched on and in the CPU set
// of our control group.
Reading<CpuSet> allowed_cpus(const Reading<CpuSet>& online, const Reading<CpuSet>& cpuset);

// The CPUs that the main thread of `pid` (0: our own process) may run on and that are switched on:
// the mask in /proc/PID/status also names CPUs that do not exist. New threads and forked workers
// inherit the mask of the thread that makes them.
Reading<CpuSet> read_affinity(FileReader& reader, int32_t pid = 0);
Reading<CpuSet> read_affinity(FileReader& reader, int32_t pid, const Reading<CpuSet>& online);

}  // namespace gpuutil
