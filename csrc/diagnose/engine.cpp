#include "diagnose/engine.h"

#include <algorithm>
#include <exception>
#include <tuple>

namespace gpuutil {

void rank_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const Severity a_severity = severity(a);
    const Severity b_severity = severity(b);
    return std::tie(b_severity, b.gain_ratio.low, b.confidence, a.id) <
           std::tie(a_severity, a.gain_ratio.low, a.confidence, b.id);
  });
}

Diagnosis diagnose(const Features& features, const Thresholds& thresholds,
                   std::span<const RuleEntry> rules) {
  Diagnosis diagnosis;
  for (const RuleEntry& rule : rules) {
    RuleResult result;
    try {
      result = rule.run(features, thresholds);
    } catch (const std::exception& error) {
      // One broken rule must not take the others' answers with it.
      result = RuleResult{};
      result.reason = std::string("the rule failed: ") + error.what();
    }
    if (result.verdict == Verdict::found && result.finding) {
      diagnosis.findings.push_back(std::move(*result.finding));
    } else if (result.verdict == Verdict::clear) {
      diagnosis.clear.emplace_back(rule.id);
    } else {
      diagnosis.not_measured.push_back({std::string(rule.id), std::move(result.reason)});
    }
  }
  rank_findings(diagnosis.findings);
  return diagnosis;
}

}  // namespace gpuutil
