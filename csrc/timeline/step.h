// One assembled step (DESIGN 4): what the timeline hands to everything above it.
#pragma once

#include <cstdint>

#include "record/phase.h"

namespace gpuutil {

// Why a step is left out of windows. It stays in the epoch budget.
enum StepMark : uint32_t {
  kStepClean = 0,
  kStepEpochTurn = 1u
      << 0,  // contains the end of one pass over the loader or the start of the next
  kStepEvaluation = 1u << 1,  // contains an evaluation loop
  kStepCheckpoint = 1u << 2,
  kStepOutlier = 1u << 3,       // over 5 x the running median
  kStepFirst = 1u << 4,         // one of the first steps (warm-up, compilation, first batches)
  kStepChanged = 1u << 5,       // gpuutil changed something inside this step
  kStepPartialBatch = 1u << 6,  // the last, smaller batch of an epoch
  kStepDropped = 1u << 7,       // events were lost inside it
};

struct Step {
  int64_t index = 0;     // 0-based, over the whole run
  int64_t epoch = 0;     // in which it ended
  int64_t begin_ns = 0;  // end of the previous step
  int64_t end_ns = 0;
  PhaseTimes phases;  // total() == end_ns - begin_ns, to the nanosecond
  PhaseTimes
      earlier;  // the part of `phases` before an epoch turn inside it: not of this step's epoch
  int64_t samples = 0;       // 0 where unknown
  uint32_t micro_steps = 0;  // batches fetched in it
  uint32_t optimizer_ends = 0;
  uint32_t loader = 0;  // the loader that fed it; 0 where none
  uint32_t marks = kStepClean;
  bool sampled =
      false;  // H2 was on for all of it: forward, backward, optimizer and other are told apart

  // Only where sampled.
  int64_t fetch_cpu_ns = 0;  // CPU of the training thread inside its fetches
  int64_t operator_ns =
      0;  // inside operators, backward and optimizer included: `compute` on a CPU device
  int64_t python_gap_ns =
      0;  // the training thread outside of fetch, operators, backward and optimizer
  int64_t user_python_ns =
      0;  // ... of which in gaps over kUserGapNs: the user's own Python, not the framework's
  uint32_t events = 0;  // recorded events, for the cost of observing

  int64_t wall_ns() const { return end_ns - begin_ns; }
};

inline constexpr int64_t kUserGapNs = 200'000;

}  // namespace gpuutil
