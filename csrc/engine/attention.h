// Why the training thread should come in at its next boundary: bits that the engine raises and the hot path reads.
#pragma once

#include <cstdint>

namespace gpuutil {

enum Attention : uint32_t {
  kAttentionCommand = 1,  // the controller has a command, or one is under way
  kAttentionReport = 2,   // lines or epochs wait for the log
};

}  // namespace gpuutil
