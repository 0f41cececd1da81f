// The epoch budget (DESIGN 5): all wall time of an epoch by phase, outliers and turns included.
// Steps that nobody looked into only know their waits; the rest of them is divided as in the
// sampled steps of the same epoch (or the latest that had any). Plain value type; one thread at a
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "timeline/epoch_turn.h"
#include "timeline/step.h"

namespace gpuutil {

struct EpochAccount {
  EpochTurn turn;
  PhaseTimes phases;         // total() == turn.wall_ns(), to the nanosecond
  bool split_known = false;  // false: host_to_device, forward, backward, optimizer and sync_wait
                             // are unknown and their time is in `other`
  int64_t sampled_steps = 0;
  double coverage_ratio = 0;  // sampled time / wall time

  std::optional<int64_t> phase_ns(Phase phase) const;
};

// Whether only the operator observer can tell the phase from `other`.
bool needs_observer(Phase phase);

class EpochBudget {
 public:
  void add(const Step& step);
  // The account of the epoch whose steps were added; the next one begins.
  EpochAccount close(const EpochTurn& turn);

 private:
  PhaseTimes sampled_, known_;  // of this epoch; known_: of unsampled time, without its `other`
  PhaseTimes clean_, any_;      // of sampled steps, for the proportions
  std::optional<PhaseTimes> latest_;  // proportions of the latest epoch that had some
  int64_t unsampled_other_ns_ = 0;    // of clean steps
  int64_t unsampled_steps_ = 0;
  std::vector<int64_t> odd_other_ns_;  // of steps that are not comparable: turns, outliers, ...
  int64_t sampled_steps_ = 0;
};

}  // namespace gpuutil
