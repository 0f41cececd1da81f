#include "engine/summaries.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace gpuutil;

namespace {

WorkerSample worker_on(int32_t pid, const char* cpus) {
  WorkerSample worker;
  worker.pid = pid;
  worker.alive = true;
  worker.cpus = parse_cpu_list(cpus);
  worker.threads = 3;
  worker.run_queue_wait_ratio = 0.25;
  return worker;
}

}  // namespace

TEST_CASE("workers' masks count together, and only where each of them was read") {
  HostSample sample;
  sample.workers = {worker_on(11, "0-1"), worker_on(12, "1,5"), worker_on(13, "0-63")};
  LoaderFacts loader;
  loader.worker_pids = {11, 12};
  CHECK(worker_mask_cores(sample, loader) == 3.0);
  const auto loads = worker_loads(sample, loader);
  REQUIRE(loads.size() == 2);
  CHECK(loads[0].threads == 3);
  CHECK(loads[0].run_queue_wait_ratio == 0.25);
  sample.workers[1].cpus = Unknown{ReadState::unreadable, "denied"};
  CHECK_FALSE(worker_mask_cores(sample, loader).has_value());
  CHECK_FALSE(worker_mask_cores(sample, LoaderFacts{}).has_value());
}

TEST_CASE("limits of the host: what was read, what has no limit, and what is not known") {
  HostSample sample;
  HostFeatures host = host_features(sample);
  CHECK_FALSE(host.quotas_known);
  CHECK_FALSE(host.mask_cores.has_value());
  CHECK_FALSE(host.allowed_cores.has_value());
  CHECK_FALSE(host.shm_size_bytes.has_value());
  CHECK_FALSE(host.descriptor_limit.has_value());

  sample.cpu_budget.mask = parse_cpu_list("0-3");
  sample.allowed_cpus = parse_cpu_list("0-7");
  sample.cpu_budget.cgroup.version = 2;
  sample.shm = ShmSpace{100, 40};
  sample.descriptors = Descriptors{12, 1024, std::nullopt};
  host = host_features(sample);
  CHECK(host.mask_cores == 4.0);
  CHECK(host.allowed_cores == 8.0);
  CHECK(host.quotas_known);
  CHECK_FALSE(host.quota_cores.has_value());
  CHECK(host.shm_free_bytes == 40.0);
  CHECK(host.open_descriptors == 12.0);
  CHECK(host.descriptor_limit == 1024.0);
  CHECK(std::isinf(*host.descriptor_hard_limit));

  sample.cpu_budget.cgroup.quotas.push_back({1.5, "/sys/fs/cgroup/a", {}});
  sample.cpu_budget.cgroup.gap.note({ReadState::unreadable, "a level above"});
  host = host_features(sample);
  CHECK_FALSE(host.quotas_known);
  CHECK(host.quota_cores == 1.5);
}
