#include "collect/process_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include "collect/text.h"

namespace gpuutil {
namespace {

std::optional<int64_t> read_uptime_jiffies(FileReader& reader, int64_t jiffies_per_second) {
  const Reading<std::string_view> text = reader.read("/proc/uptime");
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  std::string_view seconds = next_word(rest);
  const std::optional<int64_t> whole = to_int(next_until(seconds, '.'));
  const std::optional<int64_t> hundredths = to_int(seconds);
  if (!whole || !hundredths || seconds.size() != 2) return std::nullopt;
  return *whole * jiffies_per_second + *hundredths * jiffies_per_second / 100;
}

class TreeReader {
 public:
  TreeReader(FileReader& reader, const std::vector<int32_t>& workers, const ProcessTree* before,
             size_t turn)
      : reader_(reader), workers_(workers), before_(before), turn_(turn) {}

  Reading<ProcessTree> read() {
    Reading<ProcessStat> self = read_process_stat(reader_, 0);
    if (!self) return self.unknown();
    tree_.processes.push_back({std::move(*self.value), false, {}});
    if (before_) {
      for (const TreeProcess& process : before_->processes) add_known(process.stat);
    }
    // Grows while it is walked: children come after their parents.
    for (size_t i = 0; i < tree_.processes.size(); ++i) add_children(i);
    for (const int32_t pid : workers_) add_worker(pid);
    return std::move(tree_);
  }

 private:
  bool add(Reading<ProcessStat> stat) {
    if (tree_.processes.size() >= kMaxProcesses) {
      tree_.gap.note(
          {ReadState::absent, "more than " + std::to_string(kMaxProcesses) + " descendants"});
      return false;
    }
    const bool worker = std::find(workers_.begin(), workers_.end(), stat->pid) != workers_.end();
    tree_.processes.push_back({std::move(*stat.value), worker, {}});
    return true;
  }

  void add_known(const ProcessStat& known) {
    if (tree_.find(known.pid)) return;
    Reading<ProcessStat> now = read_process_stat(reader_, known.pid);
    if (now && now->same_process(known)) add(std::move(now));
  }

  // An index: the process moves in memory while its children are added.
  void add_children(size_t i) {
    const int32_t pid = tree_.processes[i].stat.pid;
    if (tree_.processes[i].stat.ended()) return;
    std::vector<int32_t> threads;
    const Reading<bool> listed = list_threads(reader_, pid, threads, size_t{1} << 16);
    if (!listed) {
      if (i == 0) tree_.gap.note(listed.unknown());  // of others: they ended since
      return;
    }
    const size_t limit = i == 0 ? kMaxOwnThreads : kMaxChildThreads;
    for (const int32_t tid : in_turn(pid, threads, limit)) add_children_of_thread(pid, tid);
    if (threads.size() > limit) threads.resize(limit);
    tree_.processes[i].threads = std::move(threads);
  }

  // The main thread makes most children; of the others `limit` a reading.
  std::vector<int32_t> in_turn(int32_t pid, const std::vector<int32_t>& threads,
                               size_t limit) const {
    if (threads.size() <= limit) return threads;
    std::vector<int32_t> chosen{pid};
    for (size_t i = 0; i < limit; ++i) {
      const int32_t tid = threads[(turn_ * limit + i) % threads.size()];
      if (tid != pid) chosen.push_back(tid);
    }
    return chosen;
  }

  void add_children_of_thread(int32_t pid, int32_t tid) {
    const ProcPath path(pid, tid, "children");
    const Reading<std::string_view> text = reader_.read(path);
    if (!text) {
      // Threads come and go; only the main thread's file tells whether this kernel has such files.
      if (tid == pid && pid == tree_.processes.front().stat.pid) tree_.gap.note(text.unknown());
      return;
    }
    std::vector<int32_t> children;
    for (std::string_view rest = *text; !rest.empty();) {
      if (const auto child = to_int<int32_t>(next_word(rest))) children.push_back(*child);
    }
    for (const int32_t child : children) {
      if (tree_.find(child)) continue;
      Reading<ProcessStat> stat = read_process_stat(reader_, child);
      if (stat && !add(std::move(stat))) return;
    }
  }

  void add_worker(int32_t pid) {
    if (tree_.find(pid)) return;
    Reading<ProcessStat> stat = read_process_stat(reader_, pid);
    if (!stat || stat->ended()) {
      missing(pid, ReadState::absent, " ended");
    } else if (!descends(*stat)) {
      missing(pid, ReadState::inconsistent, " ended; its id is now another's");
    } else if (add(std::move(stat))) {
      add_children(tree_.processes.size() - 1);
    }
  }

  // Where children are not listed: our child, or the child of a fork server that is our child.
  bool descends(const ProcessStat& stat) {
    if (tree_.find(stat.parent_pid)) return true;
    Reading<ProcessStat> parent = read_process_stat(reader_, stat.parent_pid);
    if (!parent || !tree_.find(parent->parent_pid)) return false;
    return add(std::move(parent));
  }

  void missing(int32_t pid, ReadState state, const char* what) {
    tree_.missing.push_back({pid, {state, "worker " + std::to_string(pid) + what}});
  }

  FileReader& reader_;
  const std::vector<int32_t>& workers_;
  const ProcessTree* before_;
  const size_t turn_;
  ProcessTree tree_;
};

// Two readings of a counter that never goes back may differ by a rounded jiffy.
Reading<int64_t> forward(int64_t jiffies, int64_t rounding, const std::string& what) {
  if (jiffies >= 0) return jiffies;
  if (jiffies >= -rounding) return int64_t{0};
  return Unknown{ReadState::inconsistent, what};
}

void accumulate(Reading<int64_t>& sum, const Reading<int64_t>& part) {
  if (!sum) return;
  if (part) {
    sum.value = *sum + *part;
  } else {
    sum = part.unknown();
  }
}

const TreeProcess* same_in(const ProcessTree& tree, const ProcessStat& stat) {
  const TreeProcess* found = tree.find(stat.pid);
  return found && found->stat.same_process(stat) ? found : nullptr;
}

}  // namespace

const TreeProcess* ProcessTree::find(int32_t pid) const {
  for (const TreeProcess& process : processes) {
    if (process.stat.pid == pid) return &process;
  }
  return nullptr;
}

Reading<ProcessTree> read_process_tree(FileReader& reader, const std::vector<int32_t>& worker_pids,
                                       const ProcessTree* before, size_t turn,
                                       int64_t jiffies_per_second) {
  // First: a process that starts after this instant has used nothing before the next reading began.
  const std::optional<int64_t> uptime = read_uptime_jiffies(reader, jiffies_per_second);
  Reading<ProcessTree> tree = TreeReader(reader, worker_pids, before, turn).read();
  if (tree) tree.value->uptime_jiffies = uptime;
  return tree;
}

TreeUse tree_use(const ProcessTree& before, const ProcessTree& after) {
  TreeUse use;
  use.own = use.workers = use.other_children = Reading<int64_t>(int64_t{0});
  int64_t ended = 0;  // time that moved to parents, less what was known of those that ended
  int64_t gone = 0;
  for (size_t i = 0; i < after.processes.size(); ++i) {
    const TreeProcess& now = after.processes[i];
    const std::string name = "process " + std::to_string(now.stat.pid);
    Reading<int64_t> used;
    if (const TreeProcess* was = same_in(before, now.stat)) {
      used = forward(now.stat.cpu_jiffies - was->stat.cpu_jiffies, 1,
                     name + ": its CPU time went back");
      ended += now.stat.reaped_jiffies - was->stat.reaped_jiffies;
      use.counters += 1;
    } else if (before.uptime_jiffies && now.stat.start_jiffies >= *before.uptime_jiffies) {
      used = now.stat.cpu_jiffies;
      ended += now.stat.reaped_jiffies;
      use.counters += 1;
    } else {
      used = Unknown{ReadState::waiting, name + ": one reading so far"};
    }
    accumulate(i == 0 ? use.own : now.worker ? use.workers : use.other_children, used);
    if (now.worker) use.each_worker.push_back({now.stat.pid, std::move(used)});
  }
  for (const TreeProcess& was : before.processes) {
    if (same_in(after, was.stat)) continue;
    ++gone;
    ended -= was.stat.cpu_jiffies + was.stat.reaped_jiffies;
  }
  // User and system time are rounded each, at both ends.
  use.counters += 2 * gone;
  accumulate(use.other_children,
             forward(ended, 2 * (gone + 1), "a descendant ended and nobody waited for it"));
  for (const MissingWorker& worker : after.missing) {
    use.each_worker.push_back({worker.pid, worker.why});
  }
  use.total = use.own;
  accumulate(use.total, use.workers);
  accumulate(use.total, use.other_children);
  return use;
}

}  // namespace gpuutil
