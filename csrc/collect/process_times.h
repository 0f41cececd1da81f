// What one process or one of its threads has used so far: CPU time, state, memory, waiting for a
// CPU. A process is its id and its start time together: ids are used again. `pid` 0 is our own
// process; `tid` 0 is the process as a whole (CPU time of all threads; state, name and waiting are
// then the main thread's).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

// "/proc/PID/FILE" or "/proc/PID/task/TID/FILE" without allocation.
class ProcPath {
 public:
  ProcPath(int32_t pid, int32_t tid, std::string_view file);
  std::string_view view() const { return {text_, size_}; }
  operator std::string_view() const { return view(); }  // NOLINT: implicit

 private:
  char text_[96];
  size_t size_ = 0;
};

struct ProcessStat {
  int32_t pid = 0;  // of the thread where a thread was asked for
  int32_t parent_pid = 0;
  char state =
      '?';  // R running or waiting for a CPU, S sleeping, D waiting for a disk, Z ended, T stopped
  std::string name;  // at most 15 bytes
  int64_t cpu_jiffies = 0;  // user and system
  int64_t reaped_jiffies = 0;  // of children that ended and were waited for, and of theirs
  int32_t threads = 0;
  int64_t start_jiffies = 0;  // since boot

  bool ended() const { return state == 'Z' || state == 'X' || state == 'x'; }
  bool same_process(const ProcessStat& other) const {
    return pid == other.pid && start_jiffies == other.start_jiffies;
  }
};

// Of one thread (the main thread where tid is 0): nanoseconds, not jiffies.
struct RunQueue {
  int64_t run_ns = 0;
  int64_t wait_ns = 0;  // could run and had no CPU
  int64_t slices = 0;
};

struct ThreadQueue {
  int32_t tid = 0;
  RunQueue queue;
};

struct Switches {
  int64_t voluntary = 0;  // it waited for something
  int64_t involuntary = 0;  // its CPU was given to somebody else
};

Reading<ProcessStat> parse_process_stat(std::string_view text);
Reading<ProcessStat> read_process_stat(FileReader& reader, int32_t pid, int32_t tid = 0);
Reading<int64_t> read_rss_bytes(FileReader& reader, int32_t pid);
Reading<Switches> read_switches(FileReader& reader, int32_t pid, int32_t tid = 0);
Reading<RunQueue> read_run_queue(FileReader& reader, int32_t pid, int32_t tid = 0);

// Thread ids, ascending; the value says whether there were no more than `limit`.
Reading<bool> list_threads(FileReader& reader, int32_t pid, std::vector<int32_t>& tids,
                           size_t limit);
// Those of the threads that can be read.
std::vector<ThreadQueue> read_thread_queues(FileReader& reader, int32_t pid,
                                            const std::vector<int32_t>& tids);

// Time waited for a CPU / (that + time run), over the threads in both readings. Unknown where none
// of them could run in between, or none was read.
Reading<double> run_queue_wait_ratio(const std::vector<ThreadQueue>& before,
                                     const std::vector<ThreadQueue>& after);

}  // namespace gpuutil
