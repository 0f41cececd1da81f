// Steps made by hand.
#pragma once

#include <cstdint>

#include "timeline/step.h"

namespace gpuutil::test {

constexpr int64_t kMs = 1'000'000;

// 80 ms of wait, 35 ms of work: 8 forward, 16 backward, 4 optimizer, 7 other where sampled.
inline Step unsampled_step(int64_t index, int64_t wait_ns = 80 * kMs, int64_t work_ns = 35 * kMs) {
  Step step;
  step.index = index;
  step.begin_ns = index * 1000 * kMs;
  step.end_ns = step.begin_ns + wait_ns + work_ns;
  step.phases[Phase::input_wait] = wait_ns;
  step.phases[Phase::other] = work_ns;
  step.samples = 16;
  step.micro_steps = 1;
  step.optimizer_ends = 1;
  step.loader = 10;
  return step;
}

// `slow` times the work of an unsampled one, as observing costs.
inline Step sampled_step(int64_t index, int64_t wait_ns = 80 * kMs, int64_t slow = 2) {
  Step step = unsampled_step(index, wait_ns, 35 * kMs * slow);
  step.sampled = true;
  step.phases[Phase::forward] = 8 * kMs * slow;
  step.phases[Phase::backward] = 16 * kMs * slow;
  step.phases[Phase::optimizer] = 4 * kMs * slow;
  step.phases[Phase::other] = 7 * kMs * slow;
  step.operator_ns = 21 * kMs * slow;
  step.python_gap_ns = 14 * kMs * slow;
  step.user_python_ns = 7 * kMs * slow;
  step.fetch_cpu_ns = wait_ns / 4;
  step.events = 100;
  return step;
}

}  // namespace gpuutil::test
