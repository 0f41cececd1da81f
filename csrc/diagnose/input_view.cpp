#include "diagnose/input_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/rule_result.h"
#include "diagnose/wording.h"

namespace gpuutil {
namespace {

constexpr int32_t kMostWorkers = 32;  // no advice beyond it: memory decides there, not a formula

std::optional<double> mean_waiting_ratio(const Features& features) {
  double sum = 0;
  size_t read = 0;
  for (const WorkerLoad& worker : features.workers) {
    if (!worker.waiting_ratio) continue;
    sum += *worker.waiting_ratio;
    ++read;
  }
  if (read == 0) return std::nullopt;
  return sum / static_cast<double>(read);
}

}  // namespace

std::string steps_missing(const Features& features, const Thresholds& thresholds) {
  if (features.steps < thresholds.min_steps) {
    return fmt::format("{} comparable steps seen, {} needed", features.steps, thresholds.min_steps);
  }
  if (!(features.step_seconds_p50 > 0)) return "step time not measured";
  return {};
}

double steps_evidence(const Features& features, const Thresholds& thresholds) {
  return evidence_weight(static_cast<double>(features.steps),
                         static_cast<double>(thresholds.min_steps),
                         static_cast<double>(thresholds.full_steps));
}

std::optional<double> worker_cores(const Features& features) {
  if (!features.loader || features.loader->workers == 0) return 0;
  if (features.host.worker_cores) return features.host.worker_cores;
  double sum = 0;
  size_t read = 0;
  for (const WorkerLoad& worker : features.workers) {
    if (!worker.cores) continue;
    sum += *worker.cores;
    ++read;
  }
  if (read == 0 || read != features.workers.size()) return std::nullopt;
  return sum;
}

double worker_demand(const Features& features) {
  double demand = 0;
  for (const WorkerLoad& worker : features.workers) {
    const double queued = std::clamp(worker.run_queue_wait_ratio.value_or(0), 0.0, 0.99);
    demand += std::max(0.0, worker.cores.value_or(0)) / (1 - queued);
  }
  return demand;
}

double reachable_cores(const HostFeatures& host) {
  double cores = host.mask_cores.value_or(host.cpu_budget_cores.value_or(0));
  if (host.inherited_cores) {
    const double allowed = host.allowed_cores.value_or(*host.inherited_cores);
    cores = std::max(cores, std::min(*host.inherited_cores, allowed));
  }
  return std::min(cores, host.quota_cores.value_or(cores));
}

InputView view_input(const Features& features, const Thresholds& thresholds) {
  InputView input;
  input.missing = steps_missing(features, thresholds);
  if (!input.missing.empty()) return input;
  if (!features.loader) {
    input.missing = "no DataLoader seen: input made by the loop itself is not told apart";
    return input;
  }
  input.wait_ratio = std::clamp(features.input_wait_ratio, 0.0, 1.0);
  input.step_seconds = features.step_seconds_p50;
  input.headspace_seconds = input.step_seconds * (1 - input.wait_ratio);
  input.workers = features.loader->workers;
  input.waits = input.wait_ratio >= thresholds.input_wait_ratio;
  if (!input.waits) return input;

  // The median wait against the mean one: far apart, a few steps carry it all.
  const double mean_wait = input.wait_ratio * input.step_seconds;
  input.bursts = features.input_wait_seconds_p50 < thresholds.burst_median_over_mean * mean_wait;

  // Never data loading before the CPU budget is known: one core or a quota looks exactly like a
  // slow data set.
  const std::optional<double> workers = worker_cores(features);
  if (!features.host.cpu_budget_cores || !(*features.host.cpu_budget_cores > 0)) {
    input.missing = "CPU budget not known: too few CPUs would look the same";
  } else if (!features.host.own_cores) {
    input.missing = "CPU time of this process not measured";
  } else if (!workers) {
    input.missing = "CPU time of the loader's workers not measured";
  }
  if (!input.missing.empty()) return input;

  input.budget_cores = *features.host.cpu_budget_cores;
  input.used_cores = std::max(0.0, *features.host.own_cores) + std::max(0.0, *workers);
  input.crowding_known = features.host.crowding_cores.has_value();
  input.crowding_cores =
      std::clamp(features.host.crowding_cores.value_or(0), 0.0, input.budget_cores);
  const double left = input.budget_cores - input.crowding_cores;
  input.budget_gain_ratio = std::max(0.0, 1 - input.used_cores / input.budget_cores);
  input.crowded_gain_ratio = left > input.used_cores ? 1 - input.used_cores / left : 0;

  if (features.worker_mask_cores && input.workers > 0) {
    const double mask = *features.worker_mask_cores;
    // On a CPU that others use too they want more than they get.
    const double wanted = std::max(*workers, worker_demand(features));
    input.held_by_mask = wanted >= thresholds.budget_used_ratio * mask &&
                         mask < std::min<double>(input.workers, reachable_cores(features.host));
  }

  input.evidence = steps_evidence(features, thresholds);
  if (!input.crowding_known) input.evidence *= 0.9;
  return input;
}

InputNature input_nature(const Features& features, const Thresholds& thresholds) {
  InputNature nature;
  const bool alone = !features.loader || features.loader->workers == 0;
  // Time in which a thread could run and was not let run is time in which it wanted CPU: `queued`
  // is the share of the former in both.
  double queued = features.host.run_queue_wait_ratio.value_or(0);
  if (queued < thresholds.run_queue_wait_ratio) queued = 0;
  const auto wanted = [&](double computed) {
    return std::clamp(computed / std::max(1 - queued, 0.01), 0.0, 1.0);
  };

  if (alone) {
    if (!features.fetch_cpu_ratio || features.sampled_steps < thresholds.min_sampled_steps) {
      nature.missing = features.fetch_cpu_ratio
                           ? fmt::format("CPU time inside fetches seen in {} steps, {} needed",
                                         features.sampled_steps, thresholds.min_sampled_steps)
                           : std::string("CPU time inside fetches not measured");
      return nature;
    }
    nature.cpu_share = wanted(*features.fetch_cpu_ratio);
    nature.confidence = evidence_weight(static_cast<double>(features.sampled_steps),
                                        static_cast<double>(thresholds.min_sampled_steps),
                                        static_cast<double>(thresholds.full_sampled_steps));
    nature.text = fmt::format("{} of a fetch is CPU work",
                              percent_text(std::min(1.0, *features.fetch_cpu_ratio)));
  } else {
    const std::optional<double> cores = worker_cores(features);
    const std::optional<double> waiting = mean_waiting_ratio(features);
    const double count = std::max(1, features.loader->workers);
    if (!cores && !waiting) {
      nature.missing = "neither the CPU time nor the state of the workers could be read";
      return nature;
    }
    // Counters say how much CPU a worker got, looks say whether it slept: two sources that should
    // agree.
    const double computed = cores ? wanted(*cores / count) : 0;
    const double awake = waiting ? 1 - std::clamp(*waiting, 0.0, 1.0) : 0;
    if (cores && waiting) {
      nature.cpu_share = (computed + awake) / 2;
      nature.confidence = 1 - 0.5 * std::abs(computed - awake);
    } else {
      nature.cpu_share = cores ? computed : awake;
      nature.confidence = 0.8;
    }
    nature.text = cores ? fmt::format("the workers compute {} of the time", percent_text(computed))
                        : fmt::format("the workers sleep {} of the time", percent_text(*waiting));
    const double mean_wait = features.input_wait_ratio * features.step_seconds_p50;
    if (features.input_wait_seconds_p50 < thresholds.burst_median_over_mean * mean_wait) {
      nature.confidence *= thresholds.burst_confidence;
    }
  }
  // Near the line between computing and sleeping either answer is half a guess.
  nature.confidence *= 0.6 + 0.8 * std::abs(*nature.cpu_share - thresholds.cpu_work_share);
  nature.confidence = std::clamp(nature.confidence, 0.0, 1.0);
  return nature;
}

InputWait view_input_wait(const Features& features, const Thresholds& thresholds, InputWork work) {
  InputWait wait;
  wait.input = view_input(features, thresholds);
  if (!wait.input.missing.empty()) {
    wait.ended = not_measured(wait.input.missing);
    return wait;
  }
  if (!wait.input.waits) {
    wait.ended = clear();
    return wait;
  }
  wait.nature = input_nature(features, thresholds);
  if (!wait.nature.cpu_share) {
    wait.ended = not_measured(wait.nature.missing);
  } else if ((*wait.nature.cpu_share >= thresholds.cpu_work_share) != (work == InputWork::computes)) {
    wait.ended = clear();
  }
  return wait;
}

GainRange overlap_gain(const InputView& input, double reached, double most) {
  const double high = std::min(input.wait_ratio, input.budget_gain_ratio);
  const double low = reached * std::min({input.wait_ratio, input.crowded_gain_ratio, most});
  return gain_range(low, high);
}

int32_t workers_needed(const InputView& input, bool computes) {
  const double step = input.step_seconds;
  // With workers that cannot keep up, all of them are at it all the time.
  const double work = input.workers > 0 ? input.workers * step : input.wait_ratio * step;
  const double cpu_floor =
      input.budget_cores > 0 ? step * input.used_cores / input.budget_cores : 0;
  const double target = std::max({input.headspace_seconds, cpu_floor, work / kMostWorkers, 1e-9});
  const double count = std::ceil(work / target - 1e-6) + (computes ? 0 : 1);
  const double cap = computes ? std::max(1.0, std::floor(input.budget_cores + 0.25)) : kMostWorkers;
  return static_cast<int32_t>(std::clamp(count, 1.0, cap));
}

void add_wait_evidence(const InputView& input, std::vector<Evidence>& evidence) {
  evidence.push_back(
      {"input_wait_ratio", input.wait_ratio,
       fmt::format("{} of the step waits for input{}", percent_text(input.wait_ratio),
                   input.bursts ? ", in bursts: most steps hardly wait" : "")});
  evidence.push_back(
      {"step_seconds", input.step_seconds, duration_text(input.step_seconds) + " a step"});
  evidence.push_back({"headspace_seconds", input.headspace_seconds,
                      duration_text(input.headspace_seconds) + " a step if the input were free"});
  evidence.push_back({"workers", static_cast<double>(input.workers),
                      input.workers == 0
                          ? std::string("num_workers=0: the training process makes the batches")
                          : fmt::format("num_workers={}", input.workers)});
}

void add_budget_evidence(const InputView& input, std::vector<Evidence>& evidence) {
  evidence.push_back({"cpu_used_cores", input.used_cores,
                      fmt::format("{} of {} CPUs used by this job", cores_text(input.used_cores),
                                  cores_text(input.budget_cores))});
  evidence.push_back({"cpu_budget_cores", input.budget_cores,
                      fmt::format("this job may use {} CPUs", cores_text(input.budget_cores))});
  if (input.crowding_cores >= 0.05) {
    evidence.push_back(
        {"crowding_cores", input.crowding_cores,
         fmt::format("other programs take {} of them", cores_text(input.crowding_cores))});
  }
  const double left = std::max(1 - std::min(input.wait_ratio, input.budget_gain_ratio), 1e-3);
  evidence.push_back({"ceiling_speedup_ratio", 1 / left,
                      fmt::format("these CPUs allow at most {}", speedup_text(1 / left))});
}

void add_alternatives_evidence(const InputView& input, std::vector<Evidence>& evidence) {
  evidence.push_back(
      {"shared_wait_ratio", input.wait_ratio,
       "other findings on input and on this job's CPUs speak of this same time: their gains are "
       "alternatives, not a sum"});
}

bool workers_changeable(const Features& features) {
  return features.ranks <= 1 && features.loader && features.loader->workers_changeable &&
         features.loader->dataset != DatasetKind::iterable;
}

std::string workers_fixed_reason(const Features& features) {
  if (features.ranks > 1) return "with more than one rank gpuutil only advises";
  if (features.loader && features.loader->dataset == DatasetKind::iterable) {
    return "an IterableDataset repeats its data in every worker unless it shards itself by "
           "get_worker_info(), so gpuutil leaves the worker count alone";
  }
  if (features.loader && !features.loader->workers_reason.empty())
    return features.loader->workers_reason;
  return "the worker count cannot be changed here";
}

std::string workers_call(const Features& features, const InputView& input, bool computes) {
  const int32_t workers = workers_needed(input, computes);
  std::string call = fmt::format("num_workers={}", workers);
  const double budget = input.budget_cores;
  if (computes && features.main_threads > 1 && workers + features.main_threads > budget + 0.25) {
    const auto threads = std::max(1.0, std::floor(budget - workers + 0.25));
    if (threads < features.main_threads)
      call += fmt::format(" and torch.set_num_threads({:.0f})", threads);
  }
  return call;
}

}  // namespace gpuutil
