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
    RuleEntry{"host_python", Family::monitoring, host_python},
};

}  // namespace gpuutil
