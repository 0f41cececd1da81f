// Runs the real trial code on recorded step times with a known gain: how often does it keep what
// gains nothing, and how often what gains 5 %? For tests and tests/bench/trial_errors.py. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tune/trial.h"

namespace gpuutil {

struct SimulatedTrial {
  Outcome outcome = Outcome::running;
  int steps = 0;  // baseline and discarded ones included
  std::optional<Interval> speedup;
};

// `series`: step times in seconds, read in a circle from a place that `seed` chooses. With the
// change in force a step takes 1 / (1 + gain) of what is written. Throws std::invalid_argument for
// an empty series, values that are not above zero, or a gain of -1 or less.
SimulatedTrial simulate_trial(std::span<const double> series, double gain, uint64_t seed,
                              bool cheap_flip, const Policy& policy = {});

}  // namespace gpuutil
