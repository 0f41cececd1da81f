// Training waits for batches while the CPU is free: the work behind the wait sleeps, for storage or
// a network. More workers than cores are right then, because they wait side by side.
#include <fmt/format.h>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult input_latency_bound(const Features& features, const Thresholds& thresholds) {
  const auto [ended, input, nature] = view_input_wait(features, thresholds, InputWork::sleeps);
  if (ended) return *ended;

  Finding finding;
  finding.gain_ratio = overlap_gain(input, thresholds.latency_bound_reached);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();

  finding.id = "input_latency_bound";
  finding.family = Family::data;
  finding.where = features.loader->name;
  finding.confidence = input.evidence * nature.confidence;
  finding.title = fmt::format("{} of the step waits for input that sleeps: storage or network",
                              percent_text(input.wait_ratio));
  add_wait_evidence(input, finding.evidence);
  finding.evidence.push_back({"input_cpu_ratio", *nature.cpu_share, nature.text});
  add_budget_evidence(input, finding.evidence);
  add_alternatives_evidence(input, finding.evidence);

  const std::string call = workers_call(features, input, false);
  if (workers_changeable(features)) {
    finding.remedies.push_back("loader_workers");
    if (input.workers > 0) finding.remedies.push_back("loader_prefetch");
    finding.advice = fmt::format(
        "set {}: workers that sleep may outnumber the {} CPUs; or bring the data nearer", call,
        cores_text(input.budget_cores));
  } else {
    finding.advice = fmt::format("set {} yourself: {}", call, workers_fixed_reason(features));
  }
  return found(std::move(finding));
}

}  // namespace gpuutil
