// The rules of DESIGN 11 that exist, and the one table that lists them. A rule is pure: features
// in, finding out, no state, any thread. A new cause is one file in rules/, one declaration and one
// line of the table here.
#pragma once

#include <array>
#include <string_view>

#include "diagnose/finding.h"
#include "diagnose/thresholds.h"
#include "profile/features.h"

namespace gpuutil {

using Rule = RuleResult (*)(const Features&, const Thresholds&);

RuleResult input_latency_bound(const Features& features, const Thresholds& thresholds);
RuleResult input_cpu_bound(const Features& features, const Thresholds& thresholds);
RuleResult input_single_process(const Features& features, const Thresholds& thresholds);
RuleResult per_row_fetch(const Features& features, const Thresholds& thresholds);
RuleResult collate_bound(const Features& features, const Thresholds& thresholds);
RuleResult worker_restart(const Features& features, const Thresholds& thresholds);
RuleResult too_few_cpus(const Features& features, const Thresholds& thresholds);
RuleResult cpu_quota(const Features& features, const Thresholds& thresholds);
RuleResult affinity_mask(const Features& features, const Thresholds& thresholds);
RuleResult foreign_cpu_load(const Features& features, const Thresholds& thresholds);
RuleResult main_threads(const Features& features, const Thresholds& thresholds);
RuleResult worker_threads(const Features& features, const Thresholds& thresholds);
RuleResult shm_small(const Features& features, const Thresholds& thresholds);
RuleResult fd_limit(const Features& features, const Thresholds& thresholds);
RuleResult host_python(const Features& features, const Thresholds& thresholds);

struct RuleEntry {
  std::string_view id;
  Family family;
  Rule run;
};

inline constexpr std::array kRules = {
    RuleEntry{"input_latency_bound", Family::data, input_latency_bound},
    RuleEntry{"input_cpu_bound", Family::data, input_cpu_bound},
    RuleEntry{"input_single_process", Family::data, input_single_process},
    RuleEntry{"per_row_fetch", Family::data, per_row_fetch},
    RuleEntry{"collate_bound", Family::data, collate_bound},
    RuleEntry{"worker_restart", Family::data, worker_restart},
    RuleEntry{"too_few_cpus", Family::resources, too_few_cpus},
    RuleEntry{"cpu_quota", Family::resources, cpu_quota},
    RuleEntry{"affinity_mask", Family::resources, affinity_mask},
    RuleEntry{"foreign_cpu_load", Family::resources, foreign_cpu_load},
    RuleEntry{"main_threads", Family::resources, main_threads},
    RuleEntry{"worker_threads", Family::resources, worker_threads},
    RuleEntry{"shm_small", Family::resources, shm_small},
    RuleEntry{"fd_limit", Family::resources, fd_limit},
    RuleEntry{"host_python", Family::monitoring, host_python},
};

}  // namespace gpuutil
