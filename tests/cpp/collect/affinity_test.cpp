#include "collect/affinity.h"

#include <doctest/doctest.h>

#include <string>

#include "fixture.h"

using namespace gpuutil;

TEST_CASE("a list of CPUs may hold ranges and single CPUs") {
  const auto set = parse_cpu_list("0-3,8,10-11\n");
  REQUIRE(set);
  CHECK(set->count() == 7);
  for (const int32_t cpu : {0, 1, 2, 3, 8, 10, 11}) CHECK(set->contains(cpu));
  for (const int32_t cpu : {-1, 4, 7, 9, 12, 64, 1'000'000}) CHECK_FALSE(set->contains(cpu));
  CHECK(set->to_list() == "0-3,8,10-11");
}

TEST_CASE("a list reaches past the first 64 CPUs") {
  const auto set = parse_cpu_list("63-64,200");
  REQUIRE(set);
  CHECK(set->count() == 3);
  CHECK(set->to_list() == "63-64,200");
}

TEST_CASE("an empty list is the empty set") {
  const auto set = parse_cpu_list("\n");
  REQUIRE(set);
  CHECK(set->empty());
  CHECK(set->to_list() == "");
}

TEST_CASE("what is not a list of CPUs is refused") {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "0-999999999", "1 2", "0x3"}) {
    CAPTURE(text);
    const auto set = parse_cpu_list(text);
    CHECK(set.state == ReadState::malformed);
    CHECK_FALSE(set);
  }
}

TEST_CASE("the common part of two sets has the CPUs of both") {
  const CpuSet both = parse_cpu_list("0-3,8,70")->intersect(*parse_cpu_list("2-9"));
  CHECK(both.to_list() == "2-3,8");
  CHECK(both == *parse_cpu_list("2,3,8"));
  CHECK_FALSE(both == *parse_cpu_list("2,3"));
}

TEST_CASE("two sets together have the CPUs of either, whichever reaches further") {
  CHECK(parse_cpu_list("0-1")->unite(*parse_cpu_list("1,70")).to_list() == "0-1,70");
  CHECK(parse_cpu_list("1,70")->unite(*parse_cpu_list("0-1")).to_list() == "0-1,70");
  CHECK(CpuSet().unite(CpuSet()).empty());
}

TEST_CASE("allowed are the CPUs that are on and in the group's set, as far as either is known") {
  const auto online = parse_cpu_list("0-7");
  CHECK(allowed_cpus(online, parse_cpu_list("4-11"))->to_list() == "4-7");
  CHECK(allowed_cpus(online, parse_cpu_list(""))->to_list() == "0-7");
  CHECK(allowed_cpus(online, parse_cpu_list("64-65"))->to_list() == "64-65");  // numbered anew
  const Reading<CpuSet> unknown(Unknown{ReadState::absent, "no set"});
  CHECK(allowed_cpus(online, unknown)->to_list() == "0-7");
  CHECK(allowed_cpus(unknown, parse_cpu_list("2"))->to_list() == "2");
  CHECK(allowed_cpus(unknown, unknown).reason == "no set");
}

TEST_CASE("CPUs that are switched off do not count") {
  FixtureTree tree("offline_cpus");
  FileReader reader(tree.root());
  const auto mask = read_affinity(reader);
  REQUIRE(mask);
  CHECK(mask->to_list() == "0-3,8");
}

TEST_CASE(
    "where the list of CPUs that are on is missing or numbers them differently, the mask stands") {
  FixtureTree tree;
  tree.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t4-7\n");
  FileReader reader(tree.root());
  CHECK(read_affinity(reader)->to_list() == "4-7");
  tree.write("sys/devices/system/cpu/online", "0-3\n");
  CHECK(read_affinity(reader)->to_list() == "4-7");
}

TEST_CASE("the mask of another process is its own") {
  FixtureTree tree;
  tree.write("proc/12/status", "Name:\tx\nCpus_allowed_list:\t1\n");
  FileReader reader(tree.root());
  CHECK(read_affinity(reader, 12)->to_list() == "1");
  CHECK(read_affinity(reader, 13).state == ReadState::absent);
  tree.write("proc/13/status", "Name:\tx\n");
  CHECK(read_affinity(reader, 13).reason == "/proc/13/status: no line Cpus_allowed_list");
}
