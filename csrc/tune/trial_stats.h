// Is the run with a change faster than the run without it, and how sure is that? Two arms measured
// in turns, compared so that drift, spikes and slow spells of the machine do not pass for a gain.
// Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bootstrap.h"
#include "tune/policy.h"

namespace gpuutil {

// Consecutive measurements of one arm: seconds per unit of work (a step's usual number of samples),
// in time order.
struct Block {
  bool after = false;  // with the change
  std::vector<double> values;
};

struct Comparison {
  Interval speedup;           // before / after: 1.05 is 5 % faster
  double certain_low = 0;     // its low end with a confidence of 99 % instead of 90 %
  double p_faster = 1;        // rank test, against "the arm with the change is not faster"
  bool disjoint = false;      // every value with the change is below every value without it
  double before_seconds = 0;  // medians over each arm
  double after_seconds = 0;
};

// Compares alternating blocks (before, after, before, ...). With three or more, each block is set
// against the mean of its neighbours, which cancels linear drift; the interval is the wider of two
// 90 % intervals, one from how these contrasts scatter (slow spells that hit one block), one from
// the block bootstrap of the levelled values (noise inside blocks). With two, only the bootstrap.
// Arms of fewer than four values have no bootstrap: their range stands in. std::nullopt where an
// arm has no value.
std::optional<Comparison> compare(std::span<const Block> blocks, uint64_t seed);

enum class Decision : uint8_t { keep, undo, extend };

// `saving`: the change is wanted for what it saves, and kept where it loses nothing.
Decision decide(const Comparison& comparison, const Policy& policy, bool saving);

// Every value of `after` is below every value of `before`.
bool all_below(std::span<const double> after, std::span<const double> before);

}  // namespace gpuutil
