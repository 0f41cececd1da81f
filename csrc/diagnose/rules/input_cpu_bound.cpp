// Training waits for batches, and making them is CPU work: decoding, augmentation, tokenising.
// Workers help as far as the CPU budget goes; beyond it only cheaper items do (that is
// too_few_cpus).
#include <fmt/format.h>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult input_cpu_bound(const Features& features, const Thresholds& thresholds) {
  const auto [ended, input, nature] = view_input_wait(features, thresholds, InputWork::computes);
  if (ended) return *ended;
  // More workers would share the same few CPUs: that is affinity_mask.
  if (input.held_by_mask) return clear();

  Finding finding;
  finding.gain_ratio = overlap_gain(input, thresholds.cpu_bound_reached);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();

  finding.id = "input_cpu_bound";
  finding.family = Family::data;
  finding.where = features.loader->name;
  finding.confidence = input.evidence * nature.confidence;
  finding.title = fmt::format("{} of the step waits for input: CPU work, num_workers={}",
                              percent_text(input.wait_ratio), input.workers);
  add_wait_evidence(input, finding.evidence);
  finding.evidence.push_back({"input_cpu_ratio", *nature.cpu_share, nature.text});
  add_budget_evidence(input, finding.evidence);
  add_alternatives_evidence(input, finding.evidence);

  const std::string call = workers_call(features, input, true);
  if (workers_changeable(features)) {
    finding.remedies.push_back("loader_workers");
    if (features.main_threads > 1) finding.remedies.push_back("main_threads");
    finding.advice =
        fmt::format("set {}; beyond that, cheaper items: smaller files, cached decodes", call);
  } else {
    finding.advice = fmt::format("set {} yourself: {}", call, workers_fixed_reason(features));
  }
  return found(std::move(finding));
}

}  // namespace gpuutil
