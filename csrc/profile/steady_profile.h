// The steady profile (DESIGN 5): a window folded into the step part of the features. The caller
// fills in what it knows of loaders, host and process. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "profile/features.h"
#include "profile/window.h"

namespace gpuutil {

// What the steps of a window have in common, per step, corrected for the cost of observing: a
// sampled step is slower than the others (0.5 to 0.8 us an event), so only its proportions are
// taken, and applied to the time that unsampled steps spend outside of waits. So no part is ever
// longer than the step.
struct StepShape {
  int64_t steps = 0;
  int64_t sampled_steps = 0;
  int64_t wall_ns = 0;  // of all steps
  int64_t sampled_wall_ns = 0;
  PhaseTimes known;     // of all steps: the phases that need no observer; `other` is 0
  int64_t work_ns = 0;  // of all steps: wall time - known
  // Of sampled steps; they sum to sampled_work_ns.
  PhaseTimes split;  // the phases that need the observer, and `other`
  int64_t sampled_work_ns = 0;
  int64_t operator_ns = 0, framework_gap_ns = 0, user_python_ns = 0;
};
StepShape shape_of(const Window& window);

// Steps that p50 and p95 speak of: the unsampled ones where there are enough of them, else all.
inline constexpr size_t kEnoughUnsampled = 8;

// Features of the window; `steps` is 0 and the rest is at its defaults where the window is empty. With N workers
// batches come N at a time: one step waits for all of them and the next ones for nothing, so that the median
// step says little. Quantiles are of means over `burst` steps in a row, the number of workers.
Features steady_features(const Window& window, size_t burst = 1);

}  // namespace gpuutil
