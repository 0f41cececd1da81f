// Workers that compute with several threads each (OpenCV, BLAS, OpenMP pools that size themselves by
// the machine) on CPUs that do not suffice for all of them. Told by CPU time and not by the number
// of threads: pools that sleep cost nothing, and where CPUs are left more threads may be right.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult worker_threads(const Features& features, const Thresholds& thresholds) {
  const HostFeatures& host = features.host;
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (!features.loader) return not_measured("no DataLoader seen");
  if (features.loader->workers == 0) return clear();
  if (!host.cpu_budget_cores || !(*host.cpu_budget_cores > 0)) {
    return not_measured("CPU budget not known");
  }
  if (!host.own_cores) return not_measured("CPU time of this process not measured");
  if (features.workers.empty()) return not_measured("CPU time of the loader's workers not measured");

  const double demand = worker_demand(features);
  int32_t threads = 0;
  for (const WorkerLoad& worker : features.workers) {
    if (!worker.cores) return not_measured("CPU time of the loader's workers not measured");
    threads = std::max(threads, worker.threads.value_or(0));
  }
  const auto count = static_cast<double>(features.workers.size());
  const double each = demand / count;
  if (each < thresholds.worker_demand_cores) return clear();
  const double budget = *host.cpu_budget_cores;
  const double total = demand + std::max(0.0, *host.own_cores);
  if (total <= budget + 0.25) return clear();

  const double wait = std::clamp(features.input_wait_ratio, 0.0, 1.0);
  const bool waits = wait >= thresholds.input_wait_ratio;
  const double excess = 1 - budget / total;
  Finding finding;
  finding.id = "worker_threads";
  finding.family = Family::resources;
  finding.where = features.loader->name;
  // On the CPU crowded workers slow the trainer down too; beside a device only the wait counts.
  const double high = features.device_is_host ? excess : std::min(excess, waits ? wait : 0);
  finding.gain_ratio = gain_range(waits ? thresholds.nested_threads_reached * high : 0, high);
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
  finding.confidence = 0.8 * steps_evidence(features, thresholds);
  finding.title = fmt::format("each of {:.0f} workers computes with {} threads at once: {} on {} CPUs",
                              count, cores_text(each), cores_text(total), cores_text(budget));
  finding.evidence.push_back(
      {"worker_demand_cores", each,
       fmt::format("{} threads of a worker want a CPU at the same time, on average", cores_text(each))});
  if (threads > 0) {
    finding.evidence.push_back({"worker_threads", static_cast<double>(threads),
                                fmt::format("a worker has {} threads", threads)});
  }
  finding.evidence.push_back({"demand_cores", total,
                              fmt::format("workers and trainer want {} CPUs", cores_text(total))});
  finding.evidence.push_back({"cpu_budget_cores", budget,
                              fmt::format("this job may use {} CPUs", cores_text(budget))});
  if (waits) {
    finding.evidence.push_back(
        {"shared_wait_ratio", wait,
         fmt::format("{} of the step waits for input; findings on input and too_few_cpus speak of "
                     "this same time: alternatives, not a sum",
                     percent_text(wait))});
  }
  finding.advice =
      "cap the threads in worker_init_fn (cv2.setNumThreads(0), torch.set_num_threads(1), "
      "threadpoolctl) or start with OMP_NUM_THREADS=1, and measure: one is not always best; or use "
      "fewer workers";
  return found(std::move(finding));
}

}  // namespace gpuutil
