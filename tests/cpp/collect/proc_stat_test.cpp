#include "collect/proc_stat.h"

#include <doctest/doctest.h>

#include "fixture.h"

using namespace gpuutil;

namespace {

ProcStat stat_of(std::string_view text) {
  const auto stat = parse_proc_stat(text);
  REQUIRE(stat);
  return *stat;
}

CpuSet cpus(std::string_view list) { return *parse_cpu_list(list); }

}  // namespace

TEST_CASE(
    "busy time is user, nice, system and interrupts; waiting for disks and stolen time are not") {
  const ProcStat stat =
      stat_of("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 40 50 6 7 800 1 2\nintr 5\n");
  REQUIRE(stat.cpus.size() == 1);
  CHECK(stat.cpus[0].busy == 1 + 2 + 3 + 6 + 7);
  CHECK(stat.cpus[0].interrupt == 13);
  CHECK(stat.cpus[0].idle == 40);
  CHECK(stat.cpus[0].iowait == 50);
  CHECK(stat.cpus[0].steal == 800);
}

TEST_CASE("CPUs that are switched off have no line, and their neighbours keep their numbers") {
  FixtureTree tree("offline_cpus");
  FileReader reader(tree.root());
  const auto stat = read_proc_stat(reader);
  REQUIRE(stat);
  REQUIRE(stat->cpus.size() == 5);
  CHECK(stat->cpus[4].cpu == 8);
}

TEST_CASE("only the CPUs of the mask count") {
  const ProcStat before =
      stat_of("cpu0 10 0 0 100 0 0 0 0\ncpu1 10 0 0 100 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0\n");
  const ProcStat after =
      stat_of("cpu0 15 0 0 145 0 0 0 0\ncpu1 60 0 0 100 0 0 0 0\ncpu2 50 0 0 0 0 0 0 0\n");
  const auto use = cpu_use(before, after, cpus("0-1"));
  REQUIRE(use);
  CHECK(use->cpus == 2);
  CHECK(use->jiffies.busy == 55);
  CHECK(use->jiffies.idle == 45);
  CHECK(cpu_use(before, after, cpus("1"))->jiffies.busy == 50);
}

TEST_CASE("a CPU that was switched on or off in between is left out") {
  const ProcStat before = stat_of("cpu0 10 0 0 100 0 0 0 0\ncpu1 10 0 0 100 0 0 0 0\n");
  const ProcStat after = stat_of("cpu1 20 0 0 140 0 0 0 0\ncpu2 9000 0 0 100 0 0 0 0\n");
  const auto use = cpu_use(before, after, cpus("0-3"));
  REQUIRE(use);
  CHECK(use->cpus == 1);
  CHECK(use->jiffies.busy == 10);
}

TEST_CASE("busy time that goes back is no answer; idle time that goes back a little is none") {
  const ProcStat before = stat_of("cpu0 10 0 0 100 20 0 0 0\n");
  CHECK(cpu_use(before, stat_of("cpu0 9 0 0 150 20 0 0 0\n"), cpus("0")).state ==
        ReadState::inconsistent);
  const auto use = cpu_use(before, stat_of("cpu0 60 0 0 99 19 0 0 0\n"), cpus("0"));
  REQUIRE(use);
  CHECK(use->jiffies.idle == 0);
  CHECK(use->jiffies.iowait == 0);
}

TEST_CASE("stolen time that goes back is unknown and takes nothing else with it") {
  const auto use =
      cpu_use(stat_of("cpu0 0 0 0 0 0 0 0 9\n"), stat_of("cpu0 30 0 0 20 0 0 0 4\n"), cpus("0"));
  REQUIRE(use);
  CHECK_FALSE(use->steal.has_value());
  CHECK(use->jiffies.busy == 30);
}

TEST_CASE("counters that stand still, and a mask of other CPUs, are no idle machine") {
  const ProcStat still = stat_of("cpu0 0 0 0 0 0 0 0 0 0 0\n");
  CHECK(cpu_use(still, still, cpus("0")).reason == "/proc/stat: the counters stand still");
  CHECK(cpu_use(still, still, cpus("4-7")).reason ==
        "/proc/stat: counts none of the CPUs in our mask");
}

TEST_CASE("text that is not /proc/stat is refused") {
  CHECK(parse_proc_stat("").state == ReadState::malformed);
  CHECK(parse_proc_stat("hello\n").state == ReadState::malformed);
  CHECK(parse_proc_stat("cpu0 1 2\n").state == ReadState::malformed);
  CHECK(parse_proc_stat("cpux 1 2 3 4\n").state == ReadState::malformed);
  FixtureTree tree("no_procfs");
  FileReader reader(tree.root());
  CHECK(read_proc_stat(reader).state == ReadState::absent);
}
