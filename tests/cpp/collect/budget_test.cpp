#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "collect/cpu_budget.h"
#include "collect/memory_budget.h"
#include "fixture.h"

using namespace gpuutil;

namespace {

CpuBudget cpu_budget_of(const std::string& name) {
  FixtureTree tree(name);
  FileReader reader(tree.root());
  return read_cpu_budget(reader);
}

MemoryBudget memory_budget_of(const std::string& name) {
  FixtureTree tree(name);
  FileReader reader(tree.root());
  return read_memory_budget(reader, locate_cgroups(reader));
}

constexpr int64_t kGiB = int64_t{1} << 30;

}  // namespace

TEST_CASE("without a quota the mask is the budget") {
  const CpuBudget budget = cpu_budget_of("bare_metal_v2");
  CHECK(budget.cores == 8.0);
  CHECK(budget.source == "affinity mask 0-7");
  CHECK(budget.reason == "");
}

TEST_CASE("a quota below the mask is the budget, in fractions of a CPU") {
  const CpuBudget budget = cpu_budget_of("docker_v2_namespace");
  CHECK(budget.cores == 1.5);
  CHECK(budget.mask_cores() == 16.0);
  CHECK(budget.source == "cgroup v2 quota at /sys/fs/cgroup");
  CHECK(budget.cgroup.tightest()->throttling->throttled == 1500);
  CHECK(cpu_budget_of("docker_v1").cores == 2.0);
  CHECK(cpu_budget_of("hybrid").cores == 0.5);
  CHECK(cpu_budget_of("nested_v2").cores == 3.0);
  CHECK(cpu_budget_of("kubernetes_v1").cores == 4.0);
  CHECK(cpu_budget_of("moved_namespace").cores == 2.5);
}

TEST_CASE("a mask below every quota is the budget") {
  FixtureTree tree("nested_v2");
  tree.write("proc/self/status", "Cpus_allowed_list:\t5,7\n");
  FileReader reader(tree.root());
  const CpuBudget budget = read_cpu_budget(reader);
  CHECK(budget.cores == 2.0);
  CHECK(budget.source == "affinity mask 5,7");
}

TEST_CASE("CPUs that are switched off are not in the budget") {
  CHECK(cpu_budget_of("offline_cpus").cores == 5.0);
}

TEST_CASE("a level that cannot be read leaves a budget and says that it may be too high") {
  const CpuBudget budget = cpu_budget_of("unreadable_v2");
  CHECK(budget.cores == 6.0);
  CHECK(budget.reason == "/sys/fs/cgroup/a/cpu.max: Is a directory");
}

TEST_CASE("without a readable mask the CPU set of the group stands in, then the CPUs that are on") {
  FixtureTree tree("docker_v1");
  tree.remove("proc/self/status");
  tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  FileReader reader(tree.root());
  CHECK(read_cpu_budget(reader).source == "cgroup CPU set 0-11");
  tree.remove("sys/fs/cgroup/cpuset");
  CHECK(read_cpu_budget(reader).source == "CPUs switched on 0-11");
  CHECK(read_cpu_budget(reader).cores == 12.0);
}

TEST_CASE("where nothing can be read there is no budget and a reason") {
  const CpuBudget budget = cpu_budget_of("no_procfs");
  CHECK_FALSE(budget.cores.has_value());
  CHECK(budget.source == "");
  CHECK(
      budget.reason ==
      "/proc/self/status: No such file or directory; /proc/self/cgroup: No such file or directory");
}

TEST_CASE("memory is what the machine has left where no group limits it") {
  const MemoryBudget budget = memory_budget_of("bare_metal_v2");
  CHECK(*budget.available_bytes == int64_t{20480000} * 1024);
  CHECK(*budget.machine_total_bytes == int64_t{32768000} * 1024);
  CHECK(budget.source == "MemAvailable");
}

TEST_CASE("memory is what the tightest group leaves where that is less") {
  const MemoryBudget budget = memory_budget_of("docker_v2_namespace");
  CHECK(*budget.available_bytes == kGiB * 5 / 2);
  CHECK(budget.source == "cgroup limit at /sys/fs/cgroup");
  CHECK(*memory_budget_of("nested_v2").available_bytes == kGiB);
  CHECK(*memory_budget_of("kubernetes_v1").available_bytes == 7 * kGiB);
}

TEST_CASE("a group over its limit leaves nothing, not less than nothing") {
  FixtureTree tree("docker_v2_namespace");
  tree.write("sys/fs/cgroup/memory.current", "9999999999\n");
  FileReader reader(tree.root());
  CHECK(*read_memory_budget(reader, locate_cgroups(reader)).available_bytes == 0);
}

TEST_CASE("memory that cannot be read is unknown; an unreadable level is told") {
  const MemoryBudget none = memory_budget_of("no_procfs");
  CHECK(none.available_bytes.state == ReadState::absent);
  CHECK(none.source == "");
  const MemoryBudget gap = memory_budget_of("unreadable_v2");
  CHECK(gap.available_bytes);
  CHECK(gap.reason == "/sys/fs/cgroup/a/memory.max: Is a directory");
}

TEST_CASE("shared memory is sized by the file system below the root") {
  FixtureTree tree;
  FileReader reader(tree.root());
  std::string asked;
  const auto shm = read_shm_space(reader, [&](const char* path, struct statvfs* space) {
    asked = path;
    space->f_frsize = 4096;
    space->f_blocks = 16384;
    space->f_bavail = 1024;
    return 0;
  });
  REQUIRE(shm);
  CHECK(asked == tree.root() + "/dev/shm");
  CHECK(shm->size_bytes == 64 << 20);
  CHECK(shm->free_bytes == 4 << 20);
}

TEST_CASE("no shared memory is absent, not empty") {
  FixtureTree tree;
  FileReader reader(tree.root());
  CHECK(read_shm_space(reader).state == ReadState::absent);
  const auto refused = read_shm_space(reader, [](const char*, struct statvfs*) {
    errno = EACCES;
    return -1;
  });
  CHECK(refused.state == ReadState::unreadable);
  CHECK(refused.reason == "/dev/shm: Permission denied");
}
