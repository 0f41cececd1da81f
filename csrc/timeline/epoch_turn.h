// The end of one epoch (DESIGN 4, 5). Epochs follow each other without a gap, so all wall time is
// in exactly one.
#pragma once

#include <cstdint>
#include <optional>

#include "record/phase.h"

namespace gpuutil {

enum class EpochEnd : uint8_t {
  exhausted,     // the training loader was read to its end
  new_iterator,  // the loop was left early: the training loader was iterated anew
  user_epoch,    // mon.epoch(n); once seen, only these end epochs
  end,           // flushed: detach, or the end of the run
};

struct EpochTurn {
  int64_t epoch = 0;     // 0-based
  int64_t begin_ns = 0;  // end of the previous epoch
  int64_t end_ns = 0;
  int64_t steps = 0;    // steps that ended in it
  int64_t samples = 0;  // of these steps; 0 where unknown
  uint32_t loader = 0;  // that ended it; 0 where none
  EpochEnd kind = EpochEnd::end;
  std::optional<int64_t> user_number;  // n of mon.epoch(n)

  // Wall time of the epoch = sum over its steps of (phases - earlier) + tail: the last step that
  // ended in it leaves a tail, which is the first part of the next epoch's first step
  // (Step::earlier there).
  PhaseTimes tail;
  bool tail_sampled = false;

  int64_t wall_ns() const { return end_ns - begin_ns; }
};

}  // namespace gpuutil
