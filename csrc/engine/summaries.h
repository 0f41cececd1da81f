// Turns what the layers below keep into what a report is made from. Pure.
#pragma once

#include <optional>
#include <vector>

#include "collect/host_sample.h"
#include "profile/epoch_budget.h"
#include "profile/features.h"
#include "profile/waterfall.h"
#include "report/summary.h"

namespace gpuutil {

// The host part of the features, from the latest sample.
HostFeatures host_features(const HostSample& sample);
std::vector<WorkerLoad> worker_loads(const HostSample& sample, const LoaderFacts& loader);
// CPUs in the masks of the loader's workers together; empty unless each of them was read.
std::optional<double> worker_mask_cores(const HostSample& sample, const LoaderFacts& loader);

// What foreign use of our CPUs a trial should wait for: crowding, less what may be rounding; empty where unknown.
std::optional<double> crowding_to_heed(const HostSample& sample);

ProfileSummary profile_summary(const Features& features, const std::optional<Waterfall>& waterfall);

// The part of an epoch's summary that the account tells. Phases that nobody could tell apart stay in `other`.
EpochSummary epoch_summary(const EpochAccount& account);

}  // namespace gpuutil
