// The waterfall where the device is the host (DESIGN 4, 5): busy (inside operators) + lost to each
// cause + unexplained = 1. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "profile/window.h"

namespace gpuutil {

struct Loss {
  std::string_view
      cause;  // the name of a phase, or python_gaps (short pauses between operators) or user_python
  double ratio = 0;  // of the wall time
};

struct Waterfall {
  std::optional<double> busy_ratio;  // empty: no step was sampled, and that time is unexplained
  std::vector<Loss> lost;            // largest first; zeros left out
  double unexplained_ratio = 0;

  double total() const;
};

// Empty where the window is. Sampled steps explain at most as much time as they took themselves:
// where unsampled steps, which should be faster, work longer, the excess was seen by nobody and is
// unexplained.
std::optional<Waterfall> host_waterfall(const Window& window);

}  // namespace gpuutil
