#include "collect/worker_watch.h"

#include <algorithm>
#include <utility>

namespace gpuutil {

void StateLooks::add(char state) {
  ++looks;
  if (state == 'R') ++running;
  if (state == 'S') ++sleeping;
  if (state == 'D') ++disk;
}

void WorkerWatch::look(FileReader& reader) {
  for (Watched& watched : watched_) {
    const Reading<ProcessStat> stat = read_process_stat(reader, watched.pid);
    if (!stat || stat->ended() || stat->start_jiffies != watched.start_jiffies) continue;
    watched.looks.add(stat->state);
  }
}

void WorkerWatch::add(const ProcessStat& stat) {
  if (stat.ended()) return;
  auto found = std::find_if(watched_.begin(), watched_.end(),
                            [&](const Watched& watched) { return watched.pid == stat.pid; });
  if (found == watched_.end()) found = watched_.insert(found, {stat.pid, stat.start_jiffies, {}});
  if (found->start_jiffies != stat.start_jiffies) *found = {stat.pid, stat.start_jiffies, {}};
  found->looks.add(stat.state);
}

StateLooks WorkerWatch::take(int32_t pid) {
  for (Watched& watched : watched_) {
    if (watched.pid == pid) return std::exchange(watched.looks, {});
  }
  return {};
}

void WorkerWatch::keep_only(const std::vector<int32_t>& pids) {
  std::erase_if(watched_, [&](const Watched& watched) {
    return std::find(pids.begin(), pids.end(), watched.pid) == pids.end();
  });
}

}  // namespace gpuutil
