// Where the time of an epoch went, in whole percent that add up to 100. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "report/summary.h"

namespace gpuutil {

struct TimeShare {
  std::string label;
  double ratio = 0;  // of the epoch's wall time; all of them sum to 1
  int percent = 0;   // rounded so that all of them sum to 100
};

struct TimeShares {
  std::vector<TimeShare> parts;  // in the order of the phases; empty where nothing was timed
  bool split = false;            // whether forward, backward and the rest are told apart
};

// Without one sampled step forward, backward and optimizer are all in `other`.
bool phases_split(const PhaseTimes& budget);

TimeShares time_shares(const EpochSummary& epoch);

// "time: input 12 % | forward 31 % | ... (phases seen in 9 % of the time)"; the smallest parts
// join "other" until it fits.
std::string time_line(const EpochSummary& epoch, size_t columns);

}  // namespace gpuutil
