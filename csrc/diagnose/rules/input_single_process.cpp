// num_workers=0: input and training take turns in one process, so neither hides the other. Speaks
// from the set-up alone, without knowing what the input work is: input_cpu_bound and
// input_latency_bound know more where they can.
#include <fmt/format.h>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult input_single_process(const Features& features, const Thresholds& thresholds) {
  const InputView input = view_input(features, thresholds);
  if (!input.missing.empty()) return not_measured(input.missing);
  if (!input.waits || input.workers > 0) return clear();

  Finding finding;
  finding.gain_ratio =
      overlap_gain(input, thresholds.cpu_bound_reached, thresholds.one_worker_reached);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();

  finding.id = "input_single_process";
  finding.family = Family::data;
  finding.where = features.loader->name;
  // Certain about the set-up, silent about the work: between a sure and an unsure answer of the
  // others.
  finding.confidence = 0.7 * input.evidence;
  finding.title = fmt::format("{} of the step makes its own input (num_workers=0)",
                              percent_text(input.wait_ratio));
  add_wait_evidence(input, finding.evidence);
  add_budget_evidence(input, finding.evidence);
  add_alternatives_evidence(input, finding.evidence);

  const std::string call = workers_call(features, input, true);
  if (workers_changeable(features)) {
    finding.remedies.push_back("loader_workers");
    if (features.main_threads > 1) finding.remedies.push_back("main_threads");
    finding.advice = fmt::format("set {}, so that input is made while the step runs", call);
  } else {
    finding.advice = fmt::format("set {} yourself: {}", call, workers_fixed_reason(features));
  }
  return found(std::move(finding));
}

}  // namespace gpuutil
