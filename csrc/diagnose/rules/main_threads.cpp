// The trainer's intra-op threads against the CPUs: more of them than the budget leaves beside the
// workers (they spin at barriers for a thread that has no CPU), or one of them where the step is
// arithmetic on the CPU and CPUs are left. One thread is safe and not always best.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {
namespace {

Finding begin_finding(const Features& features, const Thresholds& thresholds, double beside,
                      double target) {
  const double budget = *features.host.cpu_budget_cores;
  Finding finding;
  finding.id = "main_threads";
  finding.family = Family::resources;
  finding.confidence = 0.8 * steps_evidence(features, thresholds);
  finding.evidence.push_back({"main_threads", static_cast<double>(features.main_threads),
                              fmt::format("torch.get_num_threads() is {}", features.main_threads)});
  finding.evidence.push_back({"worker_cores", beside,
                              fmt::format("the workers want {} CPUs", cores_text(beside))});
  finding.evidence.push_back({"cpu_budget_cores", budget,
                              fmt::format("this job may use {} CPUs", cores_text(budget))});
  finding.evidence.push_back({"threads_advised", target,
                              fmt::format("{:.0f} would fit", target)});
  if (features.ranks <= 1) finding.remedies.push_back("main_threads");
  finding.advice = fmt::format("try torch.set_num_threads({:.0f}) and keep it if it is faster", target);
  return finding;
}

}  // namespace

RuleResult main_threads(const Features& features, const Thresholds& thresholds) {
  const HostFeatures& host = features.host;
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (features.main_threads <= 0) return not_measured("number of intra-op threads not known");
  if (!host.cpu_budget_cores || !(*host.cpu_budget_cores > 0)) {
    return not_measured("CPU budget not known");
  }
  const std::optional<double> workers = worker_cores(features);
  if (!host.own_cores) return not_measured("CPU time of this process not measured");
  if (!workers) return not_measured("CPU time of the loader's workers not measured");
  if (!features.device_is_host) return clear();  // a device computes; these threads hardly run

  const double budget = *host.cpu_budget_cores;
  const double threads = features.main_threads;
  const double step = features.step_seconds_p50;
  const double queued = std::clamp(host.run_queue_wait_ratio.value_or(0), 0.0, 1.0);
  const double used = std::max(0.0, *host.own_cores) + std::max(0.0, *workers);
  const int32_t count = features.loader ? features.loader->workers : 0;

  // What workers want, not what they got: on full CPUs that is less.
  double wanted = std::max(0.0, *workers);
  if (count > 0) {
    const InputNature nature = input_nature(features, thresholds);
    if (nature.cpu_share) wanted = std::max(wanted, count * *nature.cpu_share);
  }
  if (threads > 1 && threads + wanted > budget + 0.25) {
    const bool full = used >= thresholds.budget_used_ratio * budget;
    if (!full && queued < thresholds.run_queue_wait_ratio) return clear();
    const double target = std::max(1.0, std::floor(budget - wanted + 0.25));
    if (target >= threads) return clear();
    // Threads that wait at a barrier for one that has no CPU: at worst all that is too much is lost, and
    // never more than the trainer burns.
    const double burnt = std::max(0.0, *host.own_cores) / budget;
    if (burnt < thresholds.least_burnt_ratio) return clear();
    const double high = std::min(1 - budget / (threads + wanted), burnt);
    Finding finding = begin_finding(features, thresholds, wanted, target);
    finding.gain_ratio = gain_range(thresholds.main_threads_reached * std::min(high, queued), high);
    if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
    finding.title = fmt::format("{:.0f} main threads{} on {} CPUs", threads,
                                count > 0 ? fmt::format(" beside {} workers", count) : "",
                                cores_text(budget));
    if (host.run_queue_wait_ratio) {
      finding.evidence.push_back(
          {"run_queue_wait_ratio", queued,
           fmt::format("of the time in which it could run, {} went by without a CPU",
                       percent_text(queued))});
    }
    if (features.loader && features.input_wait_ratio >= thresholds.input_wait_ratio) {
      finding.evidence.push_back(
          {"shared_wait_ratio", features.input_wait_ratio,
           "findings on input and too_few_cpus may speak of this same time: alternatives, not a sum"});
    }
    return found(std::move(finding));
  }

  const bool waits = features.loader && features.input_wait_ratio >= thresholds.input_wait_ratio;
  if (threads > 1 || waits || step < thresholds.threads_step_seconds) return clear();
  const double others = std::clamp(host.crowding_cores.value_or(0), 0.0, budget);
  const double target = std::floor(budget - wanted - others + 0.25);
  if (target < 2) return clear();
  if (features.ranks > 1) return not_measured("which ranks share these CPUs is not known");
  if (!features.operator_seconds || features.sampled_steps < thresholds.min_sampled_steps) {
    return not_measured("time inside operators not seen");
  }
  const double shared = std::clamp(*features.operator_seconds / step, 0.0, 1.0);
  if (shared < thresholds.operator_ratio) return clear();
  Finding finding = begin_finding(features, thresholds, wanted, target);
  finding.gain_ratio = gain_range(shared * (1 - 1 / thresholds.second_thread_speedup),
                                  shared * (1 - 1 / target));
  finding.confidence *= 0.75;  // operators that are too small gain nothing
  finding.title = fmt::format("one thread computes, and {:.0f} more CPUs are free", target - 1);
  finding.evidence.push_back(
      {"operator_ratio", shared,
       fmt::format("{} of the step is spent inside operators", percent_text(shared))});
  return found(std::move(finding));
}

}  // namespace gpuutil
