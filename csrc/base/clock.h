// The engine's clocks, in integer nanoseconds. Any thread, no lock, no allocation. Host time is
// CLOCK_MONOTONIC everywhere; the conversion from a device's clock lives with its collector.
#pragma once

#include <ctime>

#include <cstdint>
#include <functional>

namespace gpuutil {

// A clock that somebody else provides: `now_ns` in production, a counter in tests.
using Clock = std::function<int64_t()>;

inline int64_t clock_ns(clockid_t id) noexcept {
  timespec time{};
  clock_gettime(id, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

inline int64_t now_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

// CPU time that the calling thread has used; a system call (about 0.2 us), not a vDSO read.
inline int64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace gpuutil
