#include "collect/cpu_shares.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

using namespace gpuutil;

namespace {

CpuUse machine(int64_t busy, int32_t cpus, std::optional<int64_t> steal = 0) {
  CpuUse use;
  use.jiffies.busy = busy;
  use.cpus = cpus;
  use.steal = steal;
  return use;
}

TreeUse ours(int64_t own, int64_t workers, int64_t others, int64_t counters) {
  TreeUse use;
  use.own = own;
  use.workers = workers;
  use.other_children = others;
  use.total = own + workers + others;
  use.counters = counters;
  return use;
}

}  // namespace

TEST_CASE("what was busy in our mask and was not ours is foreign") {
  const CpuShares shares = cpu_shares(machine(150, 4), ours(50, 60, 10, 5), 4.0, 0.5, true);
  CHECK(*shares.own == doctest::Approx(1.0));
  CHECK(*shares.workers == doctest::Approx(1.2));
  CHECK(*shares.other_children == doctest::Approx(0.2));
  CHECK(*shares.foreign == doctest::Approx(0.6));
  CHECK(*shares.crowding == doctest::Approx(0.6));
  CHECK(*shares.resolution == doctest::Approx(std::sqrt(9.0) / 50));
  CHECK_FALSE(shares.foreign_is_upper_bound);
}

TEST_CASE("others on CPUs that our quota would not let us use anyway do not crowd us") {
  CHECK(crowding_cores(50, 64, 4) == 0);
  CHECK(crowding_cores(62, 64, 4) == 2);
  CHECK(crowding_cores(1.5, 2, 2) == 1.5);
  CHECK(crowding_cores(1.5, 2, 4) == 1.5);
}

TEST_CASE("a deficit that rounding explains is zero, a larger one is unknown") {
  // Nine counters: an error of 3 jiffies is usual, 12 is the end of what is believed.
  CHECK(*cpu_shares(machine(38, 4), ours(50, 0, 0, 5), 4.0, 0.5, true).foreign == 0.0);
  const CpuShares shares = cpu_shares(machine(37, 4), ours(50, 0, 0, 5), 4.0, 0.5, true);
  CHECK(shares.foreign.state == ReadState::inconsistent);
  CHECK(shares.crowding.state == ReadState::inconsistent);
  CHECK(*shares.own == doctest::Approx(1.0));
}

TEST_CASE("time that the hypervisor took explains a deficit too") {
  CHECK(*cpu_shares(machine(30, 4, 8), ours(50, 0, 0, 5), 4.0, 0.5, true).foreign == 0.0);
  CHECK_FALSE(cpu_shares(machine(29, 4, 8), ours(50, 0, 0, 5), 4.0, 0.5, true).foreign);
  CHECK(cpu_shares(machine(29, 4, std::nullopt), ours(1, 0, 0, 5), 4.0, 0.5, true).steal.state ==
        ReadState::inconsistent);
}

TEST_CASE("where descendants may be missing, foreign is an upper bound") {
  CHECK(cpu_shares(machine(150, 4), ours(50, 0, 0, 5), 4.0, 0.5, false).foreign_is_upper_bound);
}

TEST_CASE("without a budget foreign is known and crowding is not") {
  const CpuShares shares = cpu_shares(machine(150, 4), ours(50, 0, 0, 5), std::nullopt, 0.5, true);
  CHECK(shares.foreign);
  CHECK(shares.crowding.state == ReadState::absent);
}

TEST_CASE("one side that cannot be read leaves the other") {
  const Unknown missing{ReadState::absent, "none"};
  const CpuShares no_machine = cpu_shares(missing, ours(50, 0, 0, 5), 4.0, 0.5, true);
  CHECK(*no_machine.own == doctest::Approx(1.0));
  CHECK(no_machine.foreign.reason == "none");
  CHECK(no_machine.steal.reason == "none");
  const CpuShares no_tree = cpu_shares(machine(150, 4, 5), missing, 4.0, 0.5, true);
  CHECK(*no_tree.steal == doctest::Approx(0.1));
  CHECK(no_tree.own.reason == "none");
  CHECK(no_tree.foreign.reason == "none");
  CHECK_FALSE(no_tree.resolution.has_value());
  TreeUse partly = ours(50, 0, 0, 5);
  partly.total = missing;
  CHECK(cpu_shares(machine(150, 4), partly, 4.0, 0.5, true).foreign.reason == "none");
}
