// The input is CPU work and this job's CPUs are used up: no worker count helps, only more CPUs or
// cheaper items. Comes before any blame of the data set, because a small quota or a mask of one
// core looks exactly like it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult too_few_cpus(const Features& features, const Thresholds& thresholds) {
  const auto [ended, input, nature] = view_input_wait(features, thresholds, InputWork::computes);
  if (ended) return *ended;

  const double throttled = features.host.throttled_ratio.value_or(0);
  // By this job alone: CPUs that others fill are not a budget too small.
  const bool used_up = input.used_cores >= thresholds.budget_used_ratio * input.budget_cores;
  const bool held_back = throttled >= thresholds.throttled_ratio;
  if (!used_up && !held_back) return clear();

  // Twice the CPUs for the low end, free input for the high one.
  const double doubled = std::max(0.0, 1 - input.used_cores / (2 * input.budget_cores));
  Finding finding;
  finding.gain_ratio = gain_range(
      thresholds.cpu_bound_reached * std::min(input.wait_ratio, doubled), input.wait_ratio);

  finding.id = "too_few_cpus";
  finding.family = Family::resources;
  finding.where = features.host.cpu_budget_source;
  const double threads = features.main_threads + input.workers;
  const bool oversubscribed = features.main_threads > 1 && threads > input.budget_cores + 0.25;
  // Threads that outnumber the CPUs spin while they wait: some of the use is not work.
  finding.confidence = input.evidence * nature.confidence * (oversubscribed ? 0.7 : 1.0);
  finding.title = fmt::format("{} of the step waits for CPU work; this job's {} CPUs are {}",
                              percent_text(input.wait_ratio), cores_text(input.budget_cores),
                              used_up ? "used up" : "throttled");
  add_wait_evidence(input, finding.evidence);
  finding.evidence.push_back({"input_cpu_ratio", *nature.cpu_share, nature.text});
  add_budget_evidence(input, finding.evidence);
  if (features.host.throttled_ratio) {
    finding.evidence.push_back(
        {"throttled_ratio", throttled,
         fmt::format("the quota was used up in {} of its periods", percent_text(throttled))});
  }
  if (features.host.run_queue_wait_ratio) {
    finding.evidence.push_back(
        {"run_queue_wait_ratio", *features.host.run_queue_wait_ratio,
         fmt::format("of the time in which it could run, {} went by without a CPU",
                     percent_text(*features.host.run_queue_wait_ratio))});
  }
  // CPU seconds of a step over the step that would be left: what keeps up.
  const double needed = input.used_cores / std::max(1 - input.wait_ratio, 0.01);
  finding.evidence.push_back(
      {"needed_cores", needed,
       fmt::format("about {:.0f} CPUs would let the input keep up", std::ceil(needed))});
  add_alternatives_evidence(input, finding.evidence);

  if (oversubscribed && features.ranks <= 1) finding.remedies.push_back("main_threads");
  finding.advice =
      fmt::format("ask for {:.0f} CPUs, or cheapen items (cached decodes)", std::ceil(needed));
  return found(std::move(finding));
}

}  // namespace gpuutil
