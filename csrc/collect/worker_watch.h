// What worker processes were doing when somebody looked: shares of looks at their main thread.
// Between two samples of the host it may be looked at more often than the rest: one small file a
// worker. Sampler thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/file_reader.h"
#include "collect/process_times.h"

namespace gpuutil {

struct StateLooks {
  int64_t looks = 0;     // at the living process
  int64_t running = 0;   // R: on a CPU or waiting for one
  int64_t sleeping = 0;  // S: waiting for a message, a socket, a lock
  int64_t disk = 0;      // D: waiting for a disk or a network file system

  void add(char state);
  // Nothing where nobody looked.
  std::optional<double> ratio(int64_t count) const {
    if (looks == 0) return std::nullopt;
    return static_cast<double>(count) / static_cast<double>(looks);
  }
};

class WorkerWatch {
 public:
  // A look that came with a reading made for something else. From now on the process is watched.
  void add(const ProcessStat& stat);
  // One look at each watched process that is still the same.
  void look(FileReader& reader);
  // The looks since the last take(). Forgets them and goes on watching.
  StateLooks take(int32_t pid);
  // Watches nobody else any more.
  void keep_only(const std::vector<int32_t>& pids);

 private:
  struct Watched {
    int32_t pid = 0;
    int64_t start_jiffies = 0;
    StateLooks looks;
  };
  std::vector<Watched> watched_;
};

}  // namespace gpuutil
