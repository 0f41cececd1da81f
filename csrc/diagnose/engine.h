// Runs every rule on one set of features and ranks what they found. Pure; any thread. The first
// finding is the verdict. Findings on the same seconds (the input_* ones, too_few_cpus) are
// alternatives: their gains must not be added, and each says so in its evidence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/rules.h"
#include "diagnose/thresholds.h"
#include "profile/features.h"

namespace gpuutil {

// A rule that could not tell, and which source it lacked.
struct NotMeasured {
  std::string id;
  std::string reason;
};

struct Diagnosis {
  std::vector<Finding> findings;  // by severity and the low end of the gain, ties by confidence, then by id
  std::vector<NotMeasured> not_measured;  // in the order of the table
  std::vector<std::string> clear;         // looked, and found nothing
};

Diagnosis diagnose(const Features& features, const Thresholds& thresholds = kThresholds,
                   std::span<const RuleEntry> rules = kRules);

// The order of DESIGN 10. Also for lists that were put together from several windows.
void rank_findings(std::vector<Finding>& findings);

}  // namespace gpuutil
