// Integers split in given proportions without losing one: the largest remainders get what rounding
// leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpuutil {

// `amount` >= 0 in parts proportional to `weights` (>= 0); the parts sum to `amount`. All zero:
// everything in the last.
std::vector<int64_t> share_out(int64_t amount, std::span<const int64_t> weights);

}  // namespace gpuutil
