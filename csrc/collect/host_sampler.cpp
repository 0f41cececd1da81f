#include "collect/host_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gpuutil {
namespace {

// Below this a jiffy is a tenth of a core and more: no rate.
constexpr int64_t kMinIntervalNs = 100'000'000;

HostSamplerOptions completed(HostSamplerOptions options) {
  if (options.pid == 0) options.pid = getpid();
  if (options.jiffies_per_second == 0) options.jiffies_per_second = sysconf(_SC_CLK_TCK);
  return options;
}

PressureSample pressure_between(const Pressure& before, const Pressure& after,
                                double interval_seconds) {
  return {some_ratio(before.cpu, after.cpu, interval_seconds),
          some_ratio(before.io, after.io, interval_seconds),
          some_ratio(before.memory, after.memory, interval_seconds)};
}

Pressure unknown_pressure(const Unknown& why) {
  const Reading<PressureTotals> unknown(why);
  return {unknown, unknown, unknown};
}

}  // namespace

HostSampler::HostSampler(HostSamplerOptions options)
    : options_(completed(std::move(options))), reader_(options_.root) {}

HostSample HostSampler::sample(int64_t time_ns, const std::vector<int32_t>& worker_pids) noexcept {
  try {
    return read(time_ns, worker_pids);
  } catch (...) {
    // Out of memory. The next sample starts anew.
    last_.reset();
    HostSample sample;
    sample.time_ns = time_ns;
    return sample;
  }
}

void HostSampler::poll_states() noexcept {
  try {
    watch_.look(reader_);
  } catch (...) {
    // One look fewer.
  }
}

HostSample HostSampler::read(int64_t time_ns, const std::vector<int32_t>& worker_pids) {
  HostSample sample;
  sample.time_ns = time_ns;
  Last now = read_now(time_ns, worker_pids);
  follow_cgroup();
  sample.cpu_budget = read_cpu_budget(reader_, cgroups_);
  const Reading<CpuSet> online = read_online_cpus(reader_);
  sample.allowed_cpus = allowed_cpus(online, read_cgroup_cpuset(reader_, cgroups_.cpuset));
  sample.memory = read_memory_budget(reader_, cgroups_);
  sample.shm = read_shm_space(reader_, options_.stat_filesystem);
  sample.descriptors = read_descriptors(reader_);
  sample.rss_bytes = read_rss_bytes(reader_, 0);
  now.cgroup = sample.cpu_budget.cgroup;
  now.machine_pressure = read_system_pressure(reader_);
  now.cgroup_pressure = cgroups_.unified && !cgroups_.unified->levels.empty()
                            ? read_cgroup_pressure(reader_, cgroups_.unified->levels.front())
                            : unknown_pressure(cgroups_.unified.unknown());

  const int64_t interval_ns = last_ ? time_ns - last_->time_ns : 0;
  if (interval_ns >= kMinIntervalNs) {
    sample.interval_seconds = static_cast<double>(interval_ns) * 1e-9;
  }
  Reading<TreeUse> use = no_rates();
  if (sample.interval_seconds) {
    if (!now.tree) {
      use = now.tree.unknown();
    } else if (!last_->tree) {
      use = last_->tree.unknown();
    } else {
      use = tree_use(*last_->tree, *now.tree);
    }
  }
  fill_rates(now, use, sample);
  std::vector<int32_t> alive;
  for (const int32_t pid : worker_pids) {
    sample.workers.push_back(worker_sample(now, use, online, pid));
    if (sample.workers.back().alive) alive.push_back(pid);
  }
  watch_.keep_only(alive);
  // After calls in quick succession the next one is still measured from the first of them.
  if (!last_ || sample.interval_seconds || interval_ns < 0) last_ = std::move(now);
  return sample;
}

HostSampler::Last HostSampler::read_now(int64_t time_ns, const std::vector<int32_t>& worker_pids) {
  Last now;
  now.time_ns = time_ns;
  // Next to each other: what runs between the two readings would look like somebody else's time, or
  // negative.
  now.machine = read_proc_stat(reader_);
  now.tree = read_tree(worker_pids);
  if (now.tree) now.queues = read_queues(*now.tree);
  return now;
}

// The group may change while we run (a manager moves us): its file is read each time, the mounts
// only on a change.
void HostSampler::follow_cgroup() {
  const Reading<std::string_view> text = reader_.read("/proc/self/cgroup");
  if (text && cgroup_text_ && *cgroup_text_ == *text) return;
  cgroup_text_.reset();
  if (text) cgroup_text_ = std::string(*text);
  cgroups_ = locate_cgroups(reader_);
}

Reading<ProcessTree> HostSampler::read_tree(const std::vector<int32_t>& worker_pids) {
  const ProcessTree* before = last_ && last_->tree ? &*last_->tree : nullptr;
  const size_t turn = turn_++;
  Reading<ProcessTree> tree =
      read_process_tree(reader_, worker_pids, before, turn, options_.jiffies_per_second);
  if (!tree || tree->processes.front().stat.pid == options_.pid) return tree;
  // This procfs belongs to another process namespace: the caller's ids name other processes in it.
  tree = read_process_tree(reader_, {}, before, turn, options_.jiffies_per_second);
  if (!tree) return tree;
  for (const int32_t pid : worker_pids) {
    tree.value->missing.push_back(
        {pid, {ReadState::inconsistent, "/proc shows the process ids of another namespace"}});
  }
  return tree;
}

std::vector<HostSampler::Queues> HostSampler::read_queues(const ProcessTree& tree) {
  std::vector<Queues> queues;
  for (size_t i = 0; i < tree.processes.size(); ++i) {
    const TreeProcess& process = tree.processes[i];
    if (i > 0 && !process.worker) continue;
    queues.push_back({process.stat.pid, process.stat.start_jiffies,
                      read_thread_queues(reader_, process.stat.pid, process.threads)});
  }
  return queues;
}

void HostSampler::fill_rates(const Last& now, const Reading<TreeUse>& use,
                             HostSample& sample) const {
  if (now.tree) {
    const std::vector<TreeProcess>& processes = now.tree->processes;
    sample.threads = processes.front().stat.threads;
    sample.run_queue_wait_ratio = queue_wait(now, processes.front().stat.pid);
    const auto other = [](const TreeProcess& process) {
      return !process.worker && !process.stat.ended();
    };
    sample.other_children =
        static_cast<int32_t>(std::count_if(processes.begin() + 1, processes.end(), other));
  } else {
    sample.threads = now.tree.unknown();
    sample.run_queue_wait_ratio = now.tree.unknown();
  }
  Reading<CpuUse> machine = no_rates();
  if (sample.interval_seconds) {
    const double seconds = *sample.interval_seconds;
    if (!now.machine || !last_->machine) {
      machine = now.machine ? last_->machine.unknown() : now.machine.unknown();
    } else if (!sample.cpu_budget.mask) {
      machine = sample.cpu_budget.mask.unknown();
    } else {
      machine = cpu_use(*last_->machine, *now.machine, *sample.cpu_budget.mask);
    }
    sample.machine_pressure =
        pressure_between(last_->machine_pressure, now.machine_pressure, seconds);
    sample.cgroup_pressure = pressure_between(last_->cgroup_pressure, now.cgroup_pressure, seconds);
    sample.throttled_ratio = throttled_ratio(last_->cgroup, now.cgroup);
  }
  const bool complete = now.tree && !now.tree->gap;
  sample.cpu =
      cpu_shares(machine, use, sample.cpu_budget.cores, sample.interval_seconds.value_or(0),
                 complete, options_.jiffies_per_second);
}

WorkerSample HostSampler::worker_sample(const Last& now, const Reading<TreeUse>& use,
                                        const Reading<CpuSet>& online, int32_t pid) {
  WorkerSample worker;
  worker.pid = pid;
  worker.cores =
      use ? Reading<double>(Unknown{ReadState::absent, "worker " + std::to_string(pid) + " ended"})
          : Reading<double>(use.unknown());
  if (use) {
    for (const WorkerUse& each : use->each_worker) {
      if (each.pid != pid) continue;
      worker.cores = each.jiffies.unknown();
      if (each.jiffies) {
        const double seconds = static_cast<double>(now.time_ns - last_->time_ns) * 1e-9;
        worker.cores = static_cast<double>(*each.jiffies) /
                       (seconds * static_cast<double>(options_.jiffies_per_second));
      }
    }
  }
  const TreeProcess* process = now.tree ? now.tree->find(pid) : nullptr;
  if (process && process->worker && !process->stat.ended()) {
    worker.alive = true;
    worker.threads = process->stat.threads;
    watch_.add(process->stat);
    worker.rss_bytes = read_rss_bytes(reader_, pid);
    worker.run_queue_wait_ratio = queue_wait(now, pid);
    worker.cpus = read_affinity(reader_, pid, online);
  } else {
    const Unknown gone{ReadState::absent, "worker " + std::to_string(pid) + " ended"};
    worker.rss_bytes = gone;
    worker.run_queue_wait_ratio = gone;
    worker.cpus = gone;
  }
  worker.states = watch_.take(pid);
  return worker;
}

Reading<double> HostSampler::queue_wait(const Last& now, int32_t pid) const {
  const auto of = [pid](const Last& reading) -> const Queues* {
    for (const Queues& queues : reading.queues) {
      if (queues.pid == pid) return &queues;
    }
    return nullptr;
  };
  const Queues* after = of(now);
  if (!last_ || !after || now.time_ns - last_->time_ns < kMinIntervalNs) return no_rates();
  const Queues* before = of(*last_);
  if (!before || before->start_jiffies != after->start_jiffies) {
    return Unknown{ReadState::waiting, "process " + std::to_string(pid) + ": one reading so far"};
  }
  return run_queue_wait_ratio(before->threads, after->threads);
}

Unknown HostSampler::no_rates() const {
  return {ReadState::waiting, last_ ? "too soon after the sample before" : "one sample so far"};
}

}  // namespace gpuutil
