// Where the time of an epoch went, in whole percent that add up to 100. Pure; any thread.
//
// Waits for input, checkpoints and evaluation are exact: every step tells them. Forward, backward
// and what lies between are told apart in sampled steps only, so the rest of the time is split as
// it was there.
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

TimeShares time_shares(const EpochSummary& epoch);

// "time: input wait 12 % | forward 31 % | ... (phases seen in 9 % of the time)"; the smallest parts
// join "other" until it fits.
std::string time_line(const EpochSummary& epoch, size_t columns);

}  // namespace gpuutil
