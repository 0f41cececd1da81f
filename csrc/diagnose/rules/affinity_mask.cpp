// CPUs that are there and that a mask keeps from us. Either the workers were pinned to fewer than
// the trainer may use and fill them, or this process itself was: by whoever launched it, or by a
// library that pins (OpenMP's binding ties the main thread to one CPU, and forked workers inherit
// that).
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

// Share of the wait saved when the CPUs behind it grow from `now` to `later`, as far as the rest of
// the job leaves any.
GainRange wider_gain(const InputView& input, double now, double later, double budget,
                     double reached) {
  const double spread = std::max(0.0, 1 - now / later);
  const double most = std::max(0.0, 1 - input.used_cores / budget);
  const double left = budget - input.crowding_cores;
  const double crowded = left > input.used_cores ? 1 - input.used_cores / left : 0;
  return gain_range(reached * std::min({input.wait_ratio, spread, crowded}),
                    std::min({input.wait_ratio, spread, most}));
}

RuleResult pinned_workers(const Features& features, const Thresholds& thresholds,
                          const InputView& input) {
  const double reach = reachable_cores(features.host);
  const double mask = *features.worker_mask_cores;
  const double possible = std::min<double>(input.workers, reach);
  Finding finding;
  finding.gain_ratio = wider_gain(input, mask, possible, reach, thresholds.cpu_bound_reached);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
  finding.id = "affinity_mask";
  finding.family = Family::resources;
  finding.where = features.loader->name;
  finding.confidence = input.evidence;
  finding.title = fmt::format("{} workers are pinned to {} of the {} CPUs that this job may use",
                              input.workers, cores_text(mask), cores_text(reach));
  add_wait_evidence(input, finding.evidence);
  finding.evidence.push_back({"worker_mask_cores", mask,
                              fmt::format("the workers may run on {} CPUs", cores_text(mask))});
  finding.evidence.push_back({"reachable_cores", reach,
                              fmt::format("the trainer may use {}", cores_text(reach))});
  const double used = *worker_cores(features);
  finding.evidence.push_back(
      {"worker_cores", used, fmt::format("the workers use {} of theirs", cores_text(used))});
  add_alternatives_evidence(input, finding.evidence);
  if (features.ranks <= 1) finding.remedies.push_back("worker_affinity");
  finding.advice =
      "find who pins them (worker_init_fn, an imported library, OMP_PROC_BIND), or call "
      "os.sched_setaffinity(0, cpus) at the end of worker_init_fn with the trainer's own CPUs";
  return found(std::move(finding));
}

}  // namespace

RuleResult affinity_mask(const Features& features, const Thresholds& thresholds) {
  const HostFeatures& host = features.host;
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (!host.mask_cores || !host.allowed_cores) {
    return not_measured("CPU mask of this process, or the CPUs of this machine, not read");
  }
  const int32_t workers = features.loader ? features.loader->workers : 0;
  const bool waits = features.loader && features.input_wait_ratio >= thresholds.input_wait_ratio;
  InputView input;
  if (waits) {
    input = view_input(features, thresholds);
    if (!input.missing.empty()) return not_measured(input.missing);
    if (workers > 0 && !features.worker_mask_cores) {
      return not_measured("CPU masks of the loader's workers not read");
    }
    if (input.held_by_mask) return pinned_workers(features, thresholds, input);
  }

  const double mask = *host.mask_cores;
  const double reach = std::min(*host.allowed_cores, host.quota_cores.value_or(*host.allowed_cores));
  if (mask >= reach) return clear();
  const std::optional<double> beside = worker_cores(features);
  if (!host.own_cores) return not_measured("CPU time of this process not measured");
  if (!beside) return not_measured("CPU time of the loader's workers not measured");
  const double used = std::max(0.0, *host.own_cores) + std::max(0.0, *beside);
  // A mask with room in it keeps nothing from anybody.
  if (used < thresholds.budget_used_ratio * mask) return clear();

  Finding finding;
  if (waits) {
    const InputNature nature = input_nature(features, thresholds);
    if (!nature.cpu_share) return not_measured(nature.missing);
    if (*nature.cpu_share < thresholds.cpu_work_share) return clear();
    const double most = std::max(0.0, 1 - used / reach);
    finding.gain_ratio = gain_range(thresholds.cpu_bound_reached * std::min(input.wait_ratio, most),
                                    input.wait_ratio);
    finding.confidence = input.evidence * nature.confidence;
    add_wait_evidence(input, finding.evidence);
  } else {
    if (!features.device_is_host) return clear();
    // Only what operators do is shared among threads, and nobody knows how well.
    const double shared = features.operator_seconds
                              ? std::clamp(*features.operator_seconds / features.step_seconds_p50, 0.0, 1.0)
                              : 1 - std::clamp(features.input_wait_ratio, 0.0, 1.0);
    finding.gain_ratio = gain_range(0, shared * (1 - mask / reach));
    finding.confidence = 0.6 * steps_evidence(features, thresholds);
  }
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
  finding.id = "affinity_mask";
  finding.family = Family::resources;
  finding.where = host.cpu_budget_source;
  const bool narrowed = host.inherited_cores && *host.inherited_cores > mask;
  finding.title = fmt::format("this process is pinned to {} of {} CPUs and fills them",
                              cores_text(mask), cores_text(*host.allowed_cores));
  finding.evidence.push_back(
      {"mask_cores", mask, fmt::format("its mask leaves it {} CPUs", cores_text(mask))});
  finding.evidence.push_back(
      {"allowed_cores", *host.allowed_cores,
       fmt::format("{} are switched on and in its control group's set",
                   cores_text(*host.allowed_cores))});
  if (narrowed) {
    finding.evidence.push_back(
        {"inherited_cores", *host.inherited_cores,
         fmt::format("it came with {}: something in this process narrowed the mask since",
                     cores_text(*host.inherited_cores))});
  }
  finding.evidence.push_back(
      {"cpu_used_cores", used, fmt::format("{} of them used by this job", cores_text(used))});
  if (waits) {
    add_alternatives_evidence(input, finding.evidence);
  }
  if (narrowed && workers > 0 && features.ranks <= 1) finding.remedies.push_back("worker_affinity");
  finding.advice =
      narrowed ? "find the import or call that pins (OMP_PROC_BIND, KMP_AFFINITY, "
                 "os.sched_setaffinity) and take it out"
               : "whoever launched it pins it (taskset, numactl, --cpus-per-task): ask for more CPUs";
  return found(std::move(finding));
}

}  // namespace gpuutil
