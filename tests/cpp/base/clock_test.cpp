#include "base/clock.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

TEST_CASE("host time never runs backwards and is the monotonic clock in nanoseconds") {
  timespec raw{};
  clock_gettime(CLOCK_MONOTONIC, &raw);
  const int64_t before = int64_t{raw.tv_sec} * 1'000'000'000 + raw.tv_nsec;
  int64_t last = now_ns();
  CHECK(last >= before);
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = now_ns();
    REQUIRE(now >= last);
    last = now;
  }
  clock_gettime(CLOCK_MONOTONIC, &raw);
  CHECK(last <= int64_t{raw.tv_sec} * 1'000'000'000 + raw.tv_nsec);
}

TEST_CASE("a thread's CPU time grows while it computes, and by no more than the time that passed") {
  const int64_t wall_begin = now_ns();
  const int64_t cpu_begin = thread_cpu_ns();
  while (thread_cpu_ns() - cpu_begin < 100'000) {
  }
  const int64_t cpu = thread_cpu_ns() - cpu_begin;
  CHECK(cpu <= now_ns() - wall_begin + 1'000'000);  // the two clocks tick apart
}

TEST_CASE("a clock can be replaced by one that a test winds") {
  int64_t time = 5;
  const Clock clock = [&] { return time; };
  CHECK(clock() == 5);
  time += 37;
  CHECK(clock() == 42);
  CHECK(Clock(now_ns)() > 0);
}

}  // namespace
}  // namespace gpuutil
