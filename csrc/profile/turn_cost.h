// What the turn from one pass over a loader to the next takes: the end of a pass, `iter()` and the first batch.
// Wherever workers are started for each pass, that is where their start hides. Plain data.
#pragma once

#include <cstdint>

namespace gpuutil {

// Medians over the latest turns of one loader.
struct TurnCost {
  int32_t turns = 0;               // that they speak of
  double epoch_seconds = 0;        // from the begin of a pass to the begin of the next one
  double end_seconds = 0;          // the fetch that found the pass exhausted: workers are ended in it
  double iter_seconds = 0;         // iter()
  double first_fetch_seconds = 0;  // the first batch of the new pass
  double usual_fetch_seconds = 0;  // a later batch, on average over a pass
};

}  // namespace gpuutil
