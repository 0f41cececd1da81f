#include "engine/summaries.h"

#include <algorithm>
#include <limits>
#include <string>

namespace gpuutil {

HostFeatures host_features(const HostSample& sample) {
  HostFeatures host;
  host.cpu_budget_cores = sample.cpu_budget.cores;
  host.cpu_budget_source = sample.cpu_budget.source;
  host.own_cores = sample.cpu.own.value;
  host.worker_cores = sample.cpu.workers.value;
  host.foreign_cores = sample.cpu.foreign.value;
  host.crowding_cores = crowding_to_heed(sample);
  host.throttled_ratio = sample.throttled_ratio.value;
  host.run_queue_wait_ratio = sample.run_queue_wait_ratio.value;
  if (sample.memory.available_bytes) {
    host.available_memory_bytes = static_cast<double>(*sample.memory.available_bytes);
  }
  host.mask_cores = sample.cpu_budget.mask_cores();
  if (sample.allowed_cpus) host.allowed_cores = sample.allowed_cpus->count();
  const CgroupCpu& cgroup = sample.cpu_budget.cgroup;
  host.quotas_known = cgroup.version != 0 && !cgroup.gap;
  if (const CpuQuota* quota = cgroup.tightest()) host.quota_cores = quota->cores;
  if (sample.shm) {
    host.shm_size_bytes = static_cast<double>(sample.shm->size_bytes);
    host.shm_free_bytes = static_cast<double>(sample.shm->free_bytes);
  }
  if (sample.descriptors) {
    const auto limit = [](std::optional<int64_t> number) {
      return number ? static_cast<double>(*number) : std::numeric_limits<double>::infinity();
    };
    host.open_descriptors = static_cast<double>(sample.descriptors->open);
    host.descriptor_limit = limit(sample.descriptors->soft_limit);
    host.descriptor_hard_limit = limit(sample.descriptors->hard_limit);
  }
  return host;
}

std::vector<WorkerLoad> worker_loads(const HostSample& sample, const LoaderFacts& loader) {
  std::vector<WorkerLoad> loads;
  for (const WorkerSample& worker : sample.workers) {
    const auto& pids = loader.worker_pids;
    if (std::find(pids.begin(), pids.end(), worker.pid) == pids.end()) continue;
    WorkerLoad load;
    load.pid = worker.pid;
    load.cores = worker.cores.value;
    load.waiting_ratio = worker.states.ratio(worker.states.sleeping + worker.states.disk);
    load.run_queue_wait_ratio = worker.run_queue_wait_ratio.value;
    load.threads = worker.threads;
    loads.push_back(load);
  }
  return loads;
}

std::optional<double> worker_mask_cores(const HostSample& sample, const LoaderFacts& loader) {
  CpuSet all;
  size_t read = 0;
  for (const WorkerSample& worker : sample.workers) {
    const auto& pids = loader.worker_pids;
    if (std::find(pids.begin(), pids.end(), worker.pid) == pids.end() || !worker.cpus) continue;
    all = all.unite(*worker.cpus);
    ++read;
  }
  if (read == 0 || read != loader.worker_pids.size()) return std::nullopt;
  return all.count();
}

std::optional<double> crowding_to_heed(const HostSample& sample) {
  if (!sample.cpu.crowding) return std::nullopt;
  // Interrupts of our own network and disk reads land in nobody's share; a loader that reads a store makes many.
  const double not_others = sample.cpu.resolution.value_or(0) + sample.cpu.interrupt.value.value_or(0);
  return std::max(0.0, *sample.cpu.crowding - not_others);
}

ProfileSummary profile_summary(const Features& features, const std::optional<Waterfall>& waterfall) {
  ProfileSummary profile;
  profile.steps = features.steps;
  if (features.steps == 0) return profile;
  profile.step_seconds_p50 = features.step_seconds_p50;
  profile.step_seconds_p95 = features.step_seconds_p95;
  profile.phase_ratio = features.phase_ratio;
  profile.coverage_ratio = features.coverage_ratio;
  if (waterfall) {
    if (waterfall->busy_ratio) profile.waterfall.push_back({"busy", *waterfall->busy_ratio});
    for (const Loss& loss : waterfall->lost) {
      profile.waterfall.push_back({std::string(loss.cause), loss.ratio});
    }
    profile.unexplained_ratio = waterfall->unexplained_ratio;
    profile.device_busy_ratio = waterfall->busy_ratio;
  }
  return profile;
}

EpochSummary epoch_summary(const EpochAccount& account) {
  EpochSummary summary;
  summary.epoch = account.turn.user_number.value_or(account.turn.epoch + 1);
  summary.steps = account.turn.steps;
  summary.wall_seconds = static_cast<double>(account.turn.wall_ns()) * 1e-9;
  if (account.turn.samples > 0 && summary.wall_seconds > 0) {
    summary.samples_per_second = static_cast<double>(account.turn.samples) / summary.wall_seconds;
  }
  summary.budget = account.phases;
  return summary;
}

}  // namespace gpuutil
