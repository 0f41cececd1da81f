// Our process and everything that descends from it, at one instant, and the CPU time that each part
// of it used between two instants. Finds descendants through /proc/PID/task/TID/children; a fork
// server's workers are its children and it is ours. Sampler thread.
//
// Nothing is lost when a process ends: its time moves to the parent that waited for it, so the sum
// of (own + waited-for children) over the tree grows by exactly what the tree used.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/file_reader.h"
#include "collect/process_times.h"
#include "collect/reading.h"

namespace gpuutil {

inline constexpr size_t kMaxProcesses = 512;
// Threads of one process that are looked at in one reading. Where there are more, the rest takes
// turns when children are looked for, and does not count towards the time waited for a CPU.
inline constexpr size_t kMaxOwnThreads = 64;
inline constexpr size_t kMaxChildThreads = 8;

struct TreeProcess {
  ProcessStat stat;
  bool worker = false;  // one of those that the caller named
  std::vector<int32_t> threads;  // the first of them, as many as are looked at
};

struct MissingWorker {
  int32_t pid = 0;
  Unknown why;
};

struct ProcessTree {
  std::vector<TreeProcess> processes;  // our own first
  std::vector<MissingWorker> missing;  // named workers that are not there
  std::optional<int64_t> uptime_jiffies;  // when the reading began
  Gap gap;  // descendants that may not have been found

  const TreeProcess* find(int32_t pid) const;
};

// `before`: the reading before this one, or nullptr. What was in it stays in the tree for as long
// as it lives, also after its parent. `turn` counts readings. Unknown where our own process cannot
// be read.
Reading<ProcessTree> read_process_tree(FileReader& reader, const std::vector<int32_t>& worker_pids,
                                       const ProcessTree* before, size_t turn,
                                       int64_t jiffies_per_second = 100);

struct WorkerUse {
  int32_t pid = 0;
  Reading<int64_t> jiffies;
};

struct TreeUse {
  Reading<int64_t> own;  // our process alone
  Reading<int64_t> workers;  // the named workers that lived through the interval or were born in it
  // Other descendants, and all that ended in the interval, workers included.
  Reading<int64_t> other_children;
  Reading<int64_t> total;
  std::vector<WorkerUse> each_worker;
  int64_t counters = 0;  // that went into total, each of them rounded to a jiffy
};

TreeUse tree_use(const ProcessTree& before, const ProcessTree& after);

}  // namespace gpuutil
