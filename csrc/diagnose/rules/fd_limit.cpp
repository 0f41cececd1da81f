// Open descriptors near the limit of this process. Every tensor that a worker hands over keeps one
// open until it is used; at the limit the run dies with "too many open files". The soft limit may be
// raised to the hard one without asking anybody.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult fd_limit(const Features& features, const Thresholds& thresholds) {
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  const HostFeatures& host = features.host;
  if (!host.open_descriptors || !host.descriptor_limit) {
    return not_measured("open descriptors, or their limit, not read");
  }
  const double limit = *host.descriptor_limit;
  const double open = *host.open_descriptors;
  if (std::isinf(limit) || open < thresholds.descriptor_ratio * limit) return clear();

  Finding finding;
  finding.id = "fd_limit";
  finding.family = Family::resources;
  const bool danger = open >= thresholds.descriptor_danger_ratio * limit;
  finding.at_least = danger ? Severity::critical : Severity::warning;
  finding.confidence = 0.9;
  finding.title = fmt::format("{:.0f} descriptors are open and {:.0f} are allowed", open, limit);
  finding.evidence.push_back({"open_descriptors", open, fmt::format("{:.0f} are open", open)});
  finding.evidence.push_back(
      {"descriptor_limit", limit, fmt::format("the soft limit is {:.0f}", limit)});
  const double hard = host.descriptor_hard_limit.value_or(limit);
  if (!std::isinf(hard)) {
    finding.evidence.push_back(
        {"descriptor_hard_limit", hard, fmt::format("the hard limit is {:.0f}", hard)});
  }
  if (hard > limit) {
    finding.remedies.push_back("fd_limit");
    finding.advice = "ulimit -n with a larger number before the start, or the sharing strategy "
                     "'file_system' of torch.multiprocessing";
  } else {
    finding.advice = "the hard limit is reached: raise it (LimitNOFILE, --ulimit nofile, limits.conf), "
                     "or use the sharing strategy 'file_system' of torch.multiprocessing";
  }
  return found(std::move(finding));
}

}  // namespace gpuutil
