#include "collect/host_sampler.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <type_traits>

#include "fixture.h"

using namespace gpuutil;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
const std::vector<int32_t> kWorkers{201, 202, 203};

HostSampler sampler_on(const FixtureTree& tree) { return HostSampler({tree.root(), 100, 100}); }

const WorkerSample& worker(const HostSample& sample, int32_t pid) {
  for (const WorkerSample& each : sample.workers) {
    if (each.pid == pid) return each;
  }
  FAIL("no such worker");
  return sample.workers.front();
}

}  // namespace

TEST_CASE("the first sample has a budget and memory, and no rates") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  const HostSample sample = sampler.sample(10 * kSecond, kWorkers);
  CHECK(sample.time_ns == 10 * kSecond);
  CHECK_FALSE(sample.interval_seconds.has_value());
  CHECK(sample.cpu_budget.cores == 3.5);
  CHECK(*sample.memory.available_bytes == int64_t{2} << 30);
  CHECK(*sample.rss_bytes == 1000 * sysconf(_SC_PAGESIZE));
  CHECK(*sample.threads == 2);
  CHECK(sample.other_children == 2);
  for (const auto* rate : {&sample.cpu.own, &sample.cpu.workers, &sample.cpu.foreign,
                           &sample.cpu.crowding, &sample.cpu.steal, &sample.run_queue_wait_ratio}) {
    CHECK_FALSE(*rate);
    CHECK(rate->state == ReadState::waiting);
    CHECK(rate->reason == "one sample so far");
  }
  CHECK(sample.throttled_ratio.state == ReadState::waiting);
  REQUIRE(sample.workers.size() == 3);
  CHECK(worker(sample, 201).alive);
  CHECK_FALSE(worker(sample, 201).cores);
  CHECK(worker(sample, 201).threads == 3);
}

TEST_CASE("two samples tell own, workers', other children's and foreign CPU apart, to the jiffy") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  tree.replace("sampler_after");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, {201, 202, 203, 204});

  CHECK(sample.interval_seconds == doctest::Approx(0.5));
  CHECK(*sample.cpu.own == doctest::Approx(30 / 50.0));
  CHECK(*sample.cpu.workers == doctest::Approx((40 + 5 + 7) / 50.0));
  CHECK(*sample.cpu.other_children == doctest::Approx((10 + 12 + 3) / 50.0));
  CHECK(*sample.cpu.foreign == doctest::Approx(33 / 50.0));
  CHECK(*sample.cpu.crowding == doctest::Approx(33 / 50.0 - 0.5));
  CHECK(*sample.cpu.interrupt == doctest::Approx(4 / 50.0));
  CHECK(*sample.cpu.iowait == doctest::Approx(8 / 50.0));
  CHECK(*sample.cpu.steal == doctest::Approx(2 / 50.0));
  CHECK_FALSE(sample.cpu.foreign_is_upper_bound);
  CHECK(*sample.cpu.resolution == doctest::Approx(std::sqrt(12.0) / 50));

  CHECK(*sample.run_queue_wait_ratio == doctest::Approx(0.25));
  CHECK(*sample.throttled_ratio == doctest::Approx(0.4));
  CHECK(*sample.machine_pressure.cpu == doctest::Approx(0.2));
  CHECK(*sample.machine_pressure.memory == 0.0);
  CHECK(sample.machine_pressure.io.state == ReadState::absent);
  CHECK(*sample.cgroup_pressure.memory == doctest::Approx(0.1));
  CHECK(sample.other_children == 2);
}

TEST_CASE("each worker has its own CPU, memory, states and waiting") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  sampler.poll_states();
  sampler.poll_states();
  tree.replace("sampler_after");
  sampler.poll_states();
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, {201, 202, 203, 204});
  REQUIRE(sample.workers.size() == 4);

  const WorkerSample& busy = worker(sample, 201);
  CHECK(busy.alive);
  CHECK(*busy.cores == doctest::Approx(0.8));
  CHECK(*busy.rss_bytes == 2048 * sysconf(_SC_PAGESIZE));
  CHECK(*busy.run_queue_wait_ratio == doctest::Approx(0.2));
  CHECK(busy.states.looks == 4);
  CHECK(*busy.states.ratio(busy.states.running) == 1.0);

  const WorkerSample& waiting = worker(sample, 202);
  CHECK(*waiting.cores == doctest::Approx(0.1));
  CHECK(waiting.states.sleeping == 2);
  CHECK(waiting.states.disk == 2);
  CHECK_FALSE(waiting.run_queue_wait_ratio);

  const WorkerSample& born = worker(sample, 204);
  CHECK(*born.cores == doctest::Approx(0.14));
  CHECK(born.states.looks == 1);
}

TEST_CASE("a sample has the workers' masks, what could be ours, shared memory and descriptors") {
  FixtureTree tree("sampler_before");
  tree.write("proc/201/status", "Name:\tpython3\nCpus_allowed_list:\t2-9\n");
  tree.write("sys/fs/cgroup/team/job/cpuset.cpus.effective", "0-5\n");
  tree.write("proc/self/limits", "Max open files            1024                 4096                 files\n");
  tree.write("proc/self/fd/0", "");
  HostSamplerOptions options{tree.root(), 100, 100};
  options.stat_filesystem = [](const char*, struct statvfs* space) {
    space->f_frsize = 4096;
    space->f_blocks = 16384;
    space->f_bavail = 1024;
    return 0;
  };
  HostSampler sampler(options);
  const HostSample sample = sampler.sample(10 * kSecond, kWorkers);
  CHECK(worker(sample, 201).cpus->to_list() == "2-7");  // 8 and 9 are not switched on
  CHECK(worker(sample, 202).cpus.state == ReadState::absent);
  CHECK(sample.allowed_cpus->to_list() == "0-5");
  CHECK(sample.shm->size_bytes == 64 << 20);
  CHECK(sample.descriptors->open == 1);
  tree.remove("proc/self/limits");
  CHECK(sampler.sample(11 * kSecond, kWorkers).descriptors.state == ReadState::absent);
}

TEST_CASE("a worker that vanished is not alive, has no rate, and keeps the looks it had") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  sampler.poll_states();
  tree.replace("sampler_after");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, kWorkers);
  const WorkerSample& gone = worker(sample, 203);
  CHECK_FALSE(gone.alive);
  CHECK(gone.cores.state == ReadState::absent);
  CHECK(gone.cores.reason == "worker 203 ended");
  CHECK_FALSE(gone.rss_bytes);
  CHECK_FALSE(gone.threads.has_value());
  CHECK(gone.states.looks == 1);
  // 204 was not named: its 7 jiffies belong to the other children.
  CHECK(*sample.cpu.workers == doctest::Approx(45 / 50.0));
  CHECK(*sample.cpu.other_children == doctest::Approx(32 / 50.0));
  CHECK(*sample.cpu.foreign == doctest::Approx(33 / 50.0));
}

TEST_CASE("a zombie is not alive, and the time that it used still counts") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  tree.replace("sampler_after");
  tree.write("proc/202/stat",
             "202 (pt_data_worker) Z 150 1 1 0 -1 0 0 0 0 0 204 101 0 0 20 0 1 0 2001 0 0\n");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, {201, 202});
  CHECK_FALSE(worker(sample, 202).alive);
  CHECK(*worker(sample, 202).cores == doctest::Approx(0.1));
  CHECK(*sample.cpu.foreign == doctest::Approx(33 / 50.0));
}

TEST_CASE(
    "a worker's id that went to a stranger is not a worker, and the stranger's time is foreign") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  tree.replace("sampler_after");
  tree.write("proc/150/task/150/children", "201 204");
  // 202 ended with 302 jiffies, which its parent has; the stranger used far more.
  tree.write("proc/150/stat",
             "150 (python3) S 100 1 1 0 -1 0 0 0 0 0 30 20 612 102 20 0 1 0 1100 0 0\n");
  tree.write("proc/202/stat",
             "202 (stranger) R 1 1 1 0 -1 0 0 0 0 0 9000 0 0 0 20 0 1 0 100030 0 0\n");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, {201, 202});
  CHECK_FALSE(worker(sample, 202).alive);
  CHECK(worker(sample, 202).cores.reason == "worker 202 ended; its id is now another's");
  CHECK(*sample.cpu.workers == doctest::Approx(40 / 50.0));
  // 204: 7, 300: 10, 203 at its end: 12, 202 at its end: 2, a child never seen: 3.
  CHECK(*sample.cpu.other_children == doctest::Approx(34 / 50.0));
}

TEST_CASE("without children files foreign is an upper bound that holds other children") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  const auto hide_children = [&] {
    for (const char* path : {"100/task/100", "100/task/101", "150/task/150"}) {
      tree.remove(std::string("proc/") + path + "/children");
    }
  };
  hide_children();
  sampler.sample(10 * kSecond, {201, 202, 203});
  tree.replace("sampler_after");
  hide_children();
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, {201, 202});
  CHECK(sample.cpu.foreign_is_upper_bound);
  CHECK(*sample.cpu.workers == doctest::Approx(45 / 50.0));
  // 300 and 204 were not found: their 17 jiffies look foreign.
  CHECK(*sample.cpu.foreign == doctest::Approx(50 / 50.0));
}

TEST_CASE("a sample too soon after another has no rates, and the next is measured from the first") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  const HostSample soon = sampler.sample(10 * kSecond + kSecond / 100, kWorkers);
  CHECK_FALSE(soon.interval_seconds.has_value());
  CHECK(soon.cpu.own.reason == "too soon after the sample before");
  CHECK_FALSE(soon.run_queue_wait_ratio);
  CHECK(soon.cpu_budget.cores == 3.5);
  tree.replace("sampler_after");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, kWorkers);
  CHECK(*sample.cpu.own == doctest::Approx(0.6));
}

TEST_CASE("a clock that goes back starts anew") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  CHECK_FALSE(sampler.sample(5 * kSecond, kWorkers).cpu.own);
  tree.replace("sampler_after");
  CHECK(*sampler.sample(5 * kSecond + kSecond / 2, kWorkers).cpu.own == doctest::Approx(0.6));
}

TEST_CASE("moving to another group moves the budget") {
  FixtureTree tree("sampler_before");
  HostSampler sampler = sampler_on(tree);
  CHECK(sampler.sample(10 * kSecond, kWorkers).cpu_budget.cores == 3.5);
  tree.write("proc/self/cgroup", "0::/small\n");
  tree.write("sys/fs/cgroup/small/cpu.max", "100000 100000\n");
  const HostSample moved = sampler.sample(11 * kSecond, kWorkers);
  CHECK(moved.cpu_budget.cores == 1.0);
  CHECK(moved.cpu_budget.source == "cgroup v2 quota at /sys/fs/cgroup/small");
}

TEST_CASE("a procfs of another process namespace has no workers of ours") {
  FixtureTree tree("sampler_before");
  HostSampler sampler({tree.root(), 4242, 100});
  sampler.sample(10 * kSecond, kWorkers);
  sampler.poll_states();
  tree.replace("sampler_after");
  const HostSample sample = sampler.sample(10 * kSecond + kSecond / 2, kWorkers);
  CHECK(*sample.cpu.own == doctest::Approx(0.6));
  CHECK_FALSE(worker(sample, 201).alive);
  CHECK(worker(sample, 201).states.looks == 0);
  CHECK(worker(sample, 201).cores.reason == "/proc shows the process ids of another namespace");
  CHECK(*sample.cpu.foreign == doctest::Approx(33 / 50.0));
}

TEST_CASE("without procfs and cgroups every number is unknown and has a reason") {
  FixtureTree tree("no_procfs");
  HostSampler sampler = sampler_on(tree);
  sampler.sample(10 * kSecond, kWorkers);
  sampler.poll_states();
  const HostSample sample = sampler.sample(11 * kSecond, kWorkers);
  CHECK_FALSE(sample.cpu_budget.cores.has_value());
  CHECK_FALSE(sample.cpu_budget.reason.empty());
  CHECK_FALSE(sample.memory.reason.empty());
  const auto unknown = [](const auto& reading) {
    CHECK_FALSE(reading);
    CHECK(reading.state == ReadState::absent);
    CHECK_FALSE(reading.reason.empty());
  };
  unknown(sample.cpu.own);
  unknown(sample.cpu.workers);
  unknown(sample.cpu.other_children);
  unknown(sample.cpu.foreign);
  unknown(sample.cpu.crowding);
  unknown(sample.cpu.steal);
  unknown(sample.threads);
  unknown(sample.rss_bytes);
  unknown(sample.run_queue_wait_ratio);
  unknown(sample.throttled_ratio);
  unknown(sample.machine_pressure.cpu);
  unknown(sample.cgroup_pressure.cpu);
  REQUIRE(sample.workers.size() == 3);
  unknown(sample.workers[0].cores);
  unknown(sample.workers[0].rss_bytes);
}

TEST_CASE("on the machine itself our own process, its budget and its memory are found") {
  HostSampler sampler;
  const HostSample first = sampler.sample(kSecond, {});
  REQUIRE(first.cpu_budget.cores.has_value());
  CHECK(*first.cpu_budget.cores > 0);
  CHECK(*first.cpu_budget.cores <= static_cast<double>(sysconf(_SC_NPROCESSORS_CONF)));
  CHECK_FALSE(first.cpu_budget.source.empty());
  REQUIRE(first.rss_bytes);
  CHECK(*first.rss_bytes > 100'000);
  REQUIRE(first.memory.available_bytes);
  CHECK(*first.memory.available_bytes > 0);
  REQUIRE(first.threads);
  CHECK(*first.threads >= 1);
  FileReader reader;
  const auto shm = read_shm_space(reader);
  if (shm) CHECK(shm->free_bytes <= shm->size_bytes);
}
