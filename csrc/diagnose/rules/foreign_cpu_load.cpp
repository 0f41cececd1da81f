// Other programs take CPU that this job would use. Said of the machine and never of the loader: the
// same wait without them would be shorter with the same code.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {
namespace {

// Mean share of the time in which a worker could run that it waited for a CPU; 0 where not known.
double worker_queue(const Features& features) {
  double sum = 0;
  for (const WorkerLoad& worker : features.workers) {
    sum += std::clamp(worker.run_queue_wait_ratio.value_or(0), 0.0, 1.0);
  }
  return features.workers.empty() ? 0 : sum / static_cast<double>(features.workers.size());
}

}  // namespace

RuleResult foreign_cpu_load(const Features& features, const Thresholds& thresholds) {
  const HostFeatures& host = features.host;
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (!host.cpu_budget_cores || !(*host.cpu_budget_cores > 0)) {
    return not_measured("CPU budget not known");
  }
  if (!host.crowding_cores) return not_measured("CPU use of other programs not measured");
  const double budget = *host.cpu_budget_cores;
  const double taken = std::clamp(*host.crowding_cores, 0.0, budget);
  if (taken < thresholds.foreign_cores) return clear();
  const std::optional<double> beside = worker_cores(features);
  if (!host.own_cores) return not_measured("CPU time of this process not measured");
  if (!beside) return not_measured("CPU time of the loader's workers not measured");

  const double used = std::max(0.0, *host.own_cores) + std::max(0.0, *beside);
  const double queued = std::clamp(host.run_queue_wait_ratio.value_or(0), 0.0, 1.0);
  // CPUs that are left over beside both cost nobody anything.
  const bool full = used + taken >= thresholds.budget_used_ratio * budget;
  if (!full && queued < thresholds.run_queue_wait_ratio) return clear();

  const double wait = std::clamp(features.input_wait_ratio, 0.0, 1.0);
  const bool waits = features.loader && wait >= thresholds.input_wait_ratio;
  bool computes = false;
  bool held = false;  // the workers queue behind each other, on the few CPUs of their own masks
  if (waits) {
    const InputNature nature = input_nature(features, thresholds);
    if (!nature.cpu_share) return not_measured(nature.missing);
    computes = *nature.cpu_share >= thresholds.cpu_work_share;
    held = view_input(features, thresholds).held_by_mask;
  }
  // Work on CPUs takes as much longer as they are fewer; waits that sleep and a device's own time do not.
  const double share = taken / budget;
  double high = 0;
  if (features.device_is_host) {
    high = waits && !computes ? share * (1 - wait) : share;
  } else if (computes) {
    high = std::min(share, wait);
  }
  Finding finding;
  finding.id = "foreign_cpu_load";
  finding.family = Family::resources;
  // Time in the run queue is time lost, to others as far as they hold the CPUs: the trainer's own for
  // as long as it computes, the workers' for as long as it waits for them.
  const double theirs = taken / std::max(taken + used, 1e-9);
  double lost = 0;
  if (features.device_is_host) {
    lost = std::min(queued, std::min(1.0, *host.own_cores) * queued / std::max(1 - queued, 0.01));
  }
  if (computes && !held) lost += wait * worker_queue(features);
  finding.gain_ratio = gain_range(std::min(high, lost * theirs), high);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
  finding.confidence =
      steps_evidence(features, thresholds) * (host.run_queue_wait_ratio ? 0.9 : 0.6);
  finding.title = fmt::format("other programs take {} of this job's {} CPUs", cores_text(taken),
                              cores_text(budget));
  finding.evidence.push_back(
      {"crowding_cores", taken, fmt::format("others use {} CPUs of ours", cores_text(taken))});
  finding.evidence.push_back({"cpu_used_cores", used,
                              fmt::format("{} of {} CPUs used by this job", cores_text(used),
                                          cores_text(budget))});
  if (host.run_queue_wait_ratio) {
    finding.evidence.push_back(
        {"run_queue_wait_ratio", queued,
         fmt::format("of the time in which it could run, {} went by without a CPU",
                     percent_text(queued))});
  }
  if (waits) {
    finding.evidence.push_back(
        {"shared_wait_ratio", wait,
         fmt::format("{} of the step waits for input; findings on input speak of this same time: "
                     "alternatives, not a sum",
                     percent_text(wait))});
  }
  finding.advice =
      "stop or move the other programs, or ask for CPUs of your own; until then trials wait, and "
      "the step times are not this job's own";
  return found(std::move(finding));
}

}  // namespace gpuutil
