#include "collect/pressure.h"

#include <doctest/doctest.h>

#include "fixture.h"

using namespace gpuutil;

TEST_CASE("totals of stalls are read, not the kernel's averages") {
  const auto pressure = parse_pressure(
      "some avg10=5.48 avg60=17.70 avg300=30.66 total=180732574\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n");
  REQUIRE(pressure);
  CHECK(pressure->some_us == 180732574);
  CHECK(pressure->full_us == 17);
}

TEST_CASE("a kernel that tells nothing about full stalls leaves them unknown") {
  const auto pressure = parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
  REQUIRE(pressure);
  CHECK_FALSE(pressure->full_us.has_value());
  CHECK(parse_pressure("full avg10=0 total=5\n").state == ReadState::malformed);
}

TEST_CASE("a kernel without pressure accounting is absent, with the file's name") {
  FixtureTree tree("no_procfs");
  FileReader reader(tree.root());
  const Pressure pressure = read_system_pressure(reader);
  CHECK(pressure.cpu.state == ReadState::absent);
  CHECK(pressure.io.reason == "/proc/pressure/io: No such file or directory");
}

TEST_CASE("a group's pressure is read from its own folder") {
  FixtureTree tree("hybrid");
  FileReader reader(tree.root());
  const Pressure pressure = read_cgroup_pressure(reader, "/sys/fs/cgroup/unified/other");
  REQUIRE(pressure.cpu);
  CHECK(pressure.cpu->some_us == 77);
  CHECK(pressure.memory.state == ReadState::absent);
}

TEST_CASE("a ratio needs two readings, and stays within the interval") {
  const Reading<PressureTotals> none = Unknown{ReadState::absent, "none"};
  const Reading<PressureTotals> first = PressureTotals{1'000'000, std::nullopt};
  const Reading<PressureTotals> second = PressureTotals{1'125'000, std::nullopt};
  CHECK(*some_ratio(first, second, 0.5) == doctest::Approx(0.25));
  CHECK(*some_ratio(first, first, 0.5) == 0.0);
  CHECK(*some_ratio(first, second, 0.1) == 1.0);
  CHECK(some_ratio(second, first, 0.5).state == ReadState::inconsistent);
  CHECK(some_ratio(none, first, 0.5).state == ReadState::waiting);
  CHECK(some_ratio(first, none, 0.5).reason == "none");
}
