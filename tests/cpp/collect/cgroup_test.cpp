#include "collect/cgroup.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "collect/cgroup_path.h"
#include "fixture.h"

using namespace gpuutil;

using Levels = std::vector<std::string>;

TEST_CASE("a group lies under a mount by whole names") {
  CHECK(path_under_mount("/", "/a/b").rest == Levels{"a", "b"});
  CHECK(path_under_mount("/", "/").rest.empty());
  CHECK(path_under_mount("/", "/").inside);
  CHECK(path_under_mount("/docker/5f", "/docker/5f").rest.empty());
  CHECK(path_under_mount("/docker/5f", "/docker/5f/sub").rest == Levels{"sub"});
  CHECK_FALSE(path_under_mount("/docker/5f", "/docker/5f0e").inside);
  CHECK_FALSE(path_under_mount("/docker/5f", "/").inside);
}

TEST_CASE("a group outside of its namespace's root is outside of a mount of that root") {
  CHECK_FALSE(path_under_mount("/", "/../..").inside);
  CHECK_FALSE(path_under_mount("/", "/../other").inside);
  CHECK(path_under_mount("/../..", "/../..").inside);
  CHECK(path_under_mount("/../..", "/../../other").rest == Levels{"other"});
  const PathUnderMount hidden = path_under_mount("/../..", "/inner");
  CHECK(hidden.inside);
  CHECK(hidden.hidden == 2);
  CHECK(hidden.rest == Levels{"inner"});
  CHECK(path_under_mount("/../..", "/../x").hidden == 1);
  CHECK_FALSE(path_under_mount("/..", "/../..").inside);
}

TEST_CASE("every level from our group up to the root of the mount is named") {
  FixtureTree tree("nested_v2");
  FileReader reader(tree.root());
  const auto location = locate_cgroups(reader).cpu;
  REQUIRE(location);
  CHECK(location->version == 2);
  CHECK(location->levels == Levels{"/sys/fs/cgroup/site/team/job/step",
                                   "/sys/fs/cgroup/site/team/job", "/sys/fs/cgroup/site/team",
                                   "/sys/fs/cgroup/site", "/sys/fs/cgroup"});
  CHECK(location->note.empty());
}

TEST_CASE("no level with a quota: none, and nothing was missed") {
  FixtureTree tree("bare_metal_v2");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  CHECK(cpu.quotas.empty());
  CHECK(cpu.tightest() == nullptr);
  CHECK_FALSE(cpu.gap);
  CHECK(read_cgroup_memory(reader, locations.memory).limits.empty());
  CHECK(read_cgroup_cpuset(reader, locations.cpuset).state == ReadState::absent);
}

TEST_CASE("the tightest quota counts, also where it is the grandparent's") {
  FixtureTree tree("nested_v2");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  REQUIRE(cpu.quotas.size() == 3);
  CHECK(cpu.quotas[0].cores == 8);
  CHECK(cpu.quotas[2].cores == 16);
  REQUIRE(cpu.tightest() != nullptr);
  CHECK(cpu.tightest()->cores == 3);
  CHECK(cpu.tightest()->level == "/sys/fs/cgroup/site/team");
  CHECK(cpu.tightest()->throttling->throttled == 50);
  CHECK(cpu.tightest()->throttling->throttled_ns == 7000);

  const CgroupMemory memory = read_cgroup_memory(reader, locations.memory);
  REQUIRE(memory.limits.size() == 2);
  // 16 GiB of which 15 are used leave less than 8 GiB of which 1 is.
  CHECK(memory.tightest()->level == "/sys/fs/cgroup/site");
  CHECK(memory.tightest()->headroom_bytes() == int64_t{1} << 30);
}

TEST_CASE("in a v2 namespace our group is the root of what we see") {
  FixtureTree tree("docker_v2_namespace");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  REQUIRE(cpu.quotas.size() == 1);
  CHECK(cpu.quotas[0].cores == 1.5);
  CHECK(cpu.quotas[0].throttling->periods == 2000);
  const CgroupMemory memory = read_cgroup_memory(reader, locations.memory);
  REQUIRE(memory.limits.size() == 1);
  // 4 GiB, 3 used, 1.5 of them file cache that is given back when needed.
  CHECK(memory.limits[0].headroom_bytes() == int64_t{5} << 29);
  CHECK(read_cgroup_cpuset(reader, locations.cpuset)->count() == 16);
}

TEST_CASE("in a v1 container procfs names the host's path and the mount starts at it") {
  FixtureTree tree("docker_v1");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  REQUIRE(locations.cpu);
  CHECK(locations.cpu->version == 1);
  CHECK(locations.cpu->levels == Levels{"/sys/fs/cgroup/cpu,cpuacct"});
  CHECK(locations.unified.state == ReadState::absent);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  REQUIRE(cpu.quotas.size() == 1);
  CHECK(cpu.quotas[0].cores == 2);
  CHECK(cpu.quotas[0].throttling->throttled == 317);
  CHECK(cpu.quotas[0].throttling->throttled_ns == 15'000'000'000);
  const CgroupMemory memory = read_cgroup_memory(reader, locations.memory);
  REQUIRE(memory.limits.size() == 1);
  CHECK(memory.limits[0].headroom_bytes() == (int64_t{1} << 30) + (int64_t{1} << 27));
  CHECK(read_cgroup_cpuset(reader, locations.cpuset)->to_list() == "0-11");
}

TEST_CASE("with both trees mounted a controller is read where it lives") {
  FixtureTree tree("hybrid");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  CHECK(cpu.version == 1);
  REQUIRE(cpu.quotas.size() == 2);
  CHECK(cpu.tightest()->cores == 0.5);
  CHECK(cpu.tightest()->level == "/sys/fs/cgroup/cpu/batch");
  CHECK(cpu.quotas[0].throttling.state == ReadState::absent);
  CHECK(read_cgroup_memory(reader, locations.memory).limits.empty());
  REQUIRE(locations.unified);
  CHECK(locations.unified->levels.front() == "/sys/fs/cgroup/unified/other");
}

TEST_CASE(
    "another container's mount of the same tree is not ours, and a hidden limit above is known") {
  FixtureTree tree("kubernetes_v1");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  REQUIRE(cpu.quotas.size() == 1);
  CHECK(cpu.quotas[0].cores == 4);
  const CgroupMemory memory = read_cgroup_memory(reader, locations.memory);
  REQUIRE(memory.limits.size() == 2);
  CHECK(memory.tightest()->limit_bytes == int64_t{8} << 30);
  CHECK(memory.tightest()->level == "above /sys/fs/cgroup/memory");
  CHECK(memory.tightest()->headroom_bytes() == int64_t{7} << 30);
}

TEST_CASE("a level that cannot be read is a gap; the levels around it are read all the same") {
  FixtureTree tree("unreadable_v2");
  FileReader reader(tree.root());
  const CgroupLocations locations = locate_cgroups(reader);
  const CgroupCpu cpu = read_cgroup_cpu(reader, locations.cpu);
  REQUIRE(cpu.quotas.size() == 1);
  CHECK(cpu.quotas[0].cores == 6);
  CHECK(cpu.quotas[0].throttling.state == ReadState::unreadable);
  CHECK(cpu.gap.state == ReadState::unreadable);
  CHECK(cpu.gap.reason == "/sys/fs/cgroup/a/cpu.max: Is a directory");
  const CgroupMemory memory = read_cgroup_memory(reader, locations.memory);
  CHECK(memory.limits.empty());
  CHECK(memory.gap.reason == "/sys/fs/cgroup/a/memory.max: Is a directory");
}

TEST_CASE("quota files with nonsense are gaps, not quotas") {
  FixtureTree tree("docker_v2_namespace");
  FileReader reader(tree.root());
  for (const char* text : {"", "lots 100000\n", "0 100000\n", "-5 100000\n", "100000 0\n"}) {
    CAPTURE(text);
    tree.write("sys/fs/cgroup/cpu.max", text);
    const CgroupCpu cpu = read_cgroup_cpu(reader, locate_cgroups(reader).cpu);
    CHECK(cpu.quotas.empty());
    CHECK(cpu.gap.state == ReadState::malformed);
  }
  tree.write("sys/fs/cgroup/cpu.max", "50000\n");
  CHECK(read_cgroup_cpu(reader, locate_cgroups(reader).cpu).tightest()->cores == 0.5);
}

TEST_CASE("under a mount whose root lies above our namespace, our group is the one that lists us") {
  FixtureTree tree("moved_namespace");
  FileReader reader(tree.root());
  const auto location = locate_cgroups(reader).cpu;
  REQUIRE(location);
  CHECK(location->levels == Levels{"/sys/fs/cgroup/pods/ours/inner", "/sys/fs/cgroup/pods/ours",
                                   "/sys/fs/cgroup/pods", "/sys/fs/cgroup"});
  CHECK(read_cgroup_cpu(reader, location).tightest()->cores == 2.5);
}

TEST_CASE("where that search finds nothing, the visible root counts and the gap is told") {
  FixtureTree tree("moved_namespace");
  tree.remove("sys/fs/cgroup/pods");
  FileReader reader(tree.root());
  const auto location = locate_cgroups(reader).cpu;
  REQUIRE(location);
  CHECK(location->levels == Levels{"/sys/fs/cgroup"});
  const CgroupCpu cpu = read_cgroup_cpu(reader, location);
  CHECK(cpu.quotas.empty());
  CHECK(cpu.gap.reason ==
        "cgroup v2: the groups between /sys/fs/cgroup and ours could not be found");
}

TEST_CASE("a process moved out of its namespace's tree has no visible group") {
  FixtureTree tree("docker_v2_namespace");
  tree.write("proc/self/cgroup", "0::/../..\n");
  FileReader reader(tree.root());
  const auto location = locate_cgroups(reader).cpu;
  CHECK(location.state == ReadState::absent);
  CHECK(location.reason == "cgroup v2: our group /../.. lies outside of what is mounted");
  CHECK(read_cgroup_cpu(reader, location).gap);
}

TEST_CASE("a group whose folder is not visible leaves its visible ancestors and a note") {
  FixtureTree tree("nested_v2");
  tree.write("proc/self/cgroup", "0::/site/team/gone/deeper\n");
  FileReader reader(tree.root());
  const auto location = locate_cgroups(reader).cpu;
  REQUIRE(location);
  CHECK(location->levels.front() == "/sys/fs/cgroup/site/team");
  CHECK(location->note == "cgroup v2: /sys/fs/cgroup/site/team/gone/deeper is not visible");
}

TEST_CASE("without mounts, without procfs, without the controller: absent, with the reason") {
  FixtureTree tree("docker_v1");
  FileReader reader(tree.root());
  tree.write("proc/self/mountinfo", "96 1 259:2 / / rw - ext4 /dev/sda rw\n");
  CHECK(locate_cgroups(reader).cpu.reason == "cgroup v1 cpu: not mounted");
  tree.write("proc/self/cgroup", "1:name=systemd:/x\n");
  CHECK(locate_cgroups(reader).cpu.reason == "no cgroup controller cpu");
  tree.replace("no_procfs");
  const CgroupLocations none = locate_cgroups(reader);
  for (const auto& location : {none.cpu, none.memory, none.cpuset, none.unified}) {
    CHECK(location.state == ReadState::absent);
    CHECK(location.reason == "/proc/self/cgroup: No such file or directory");
  }
}

TEST_CASE("of two mounts of our tree the one that shows more levels above us is read") {
  FixtureTree tree("nested_v2");
  const std::string whole = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  const std::string ours = "31 23 0:26 /site/team/job/step /mnt/ours rw - cgroup2 cgroup2 rw\n";
  const std::string hidden = "32 23 0:26 / /not/reachable rw - cgroup2 cgroup2 rw\n";
  tree.write("mnt/ours/cpu.max", "800000 100000\n");
  FileReader reader(tree.root());
  for (const std::string& mounts : {whole + ours, ours + whole, whole + ours + hidden}) {
    tree.write("proc/self/mountinfo", mounts);
    const CgroupCpu cpu = read_cgroup_cpu(reader, locate_cgroups(reader).cpu);
    REQUIRE(cpu.tightest() != nullptr);
    CHECK(cpu.tightest()->level == "/sys/fs/cgroup/site/team");
  }
}

TEST_CASE("a mount point with a space in its name is found") {
  FixtureTree tree("docker_v2_namespace");
  tree.write("proc/self/mountinfo", "30 23 0:26 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n");
  tree.write("mnt/my groups/cpu.max", "700000 100000\n");
  FileReader reader(tree.root());
  CHECK(read_cgroup_cpu(reader, locate_cgroups(reader).cpu).tightest()->cores == 7);
}

namespace {

CgroupCpu quota(std::string level, Reading<Throttling> throttling) {
  CgroupCpu cpu;
  cpu.quotas.push_back({2, std::move(level), std::move(throttling)});
  return cpu;
}

}  // namespace

TEST_CASE("the throttled ratio is that of the level where it is highest") {
  CgroupCpu before = quota("/a", Throttling{100, 10, 0});
  before.quotas.push_back({3, "/b", Throttling{100, 10, 0}});
  CgroupCpu after = quota("/a", Throttling{110, 12, 0});
  after.quotas.push_back({3, "/b", Throttling{110, 15, 0}});
  CHECK(*throttled_ratio(before, after) == doctest::Approx(0.5));
}

TEST_CASE("no quota and no period that ran are a ratio of zero; a level not read is unknown") {
  CHECK(*throttled_ratio({}, {}) == 0.0);
  const CgroupCpu idle = quota("/a", Throttling{100, 10, 0});
  CHECK(*throttled_ratio(idle, idle) == 0.0);
  CHECK(throttled_ratio({}, idle).state == ReadState::waiting);
  CHECK(throttled_ratio(idle, quota("/a", Throttling{90, 10, 0})).state == ReadState::inconsistent);
  CHECK(throttled_ratio(idle, quota("/a", Unknown{ReadState::unreadable, "no"})).reason == "no");
  CgroupCpu gap;
  gap.gap.note({ReadState::unreadable, "/a: refused"});
  CHECK(throttled_ratio(gap, gap).reason == "/a: refused");
}
