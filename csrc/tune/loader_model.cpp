#include "tune/loader_model.h"

#include <algorithm>
#include <cmath>

#include "diagnose/input_view.h"

namespace gpuutil {

namespace {

// The part of a trainer's step that threads share.
constexpr double kParallelPart = 0.5;

// A team of threads waits for its slowest member: with a core too few for each of them and the
// workers, every parallel region waits for a time slice. Two cores, measured: +10 to +35 % for one
// core too few.
constexpr double kCrowdPenalty = 0.3;

constexpr double kTie = 0.02;
constexpr double kThinMargin = 0.9;
constexpr double kInputBound = 0.02;   // share of the step that waits for input
constexpr double kSaturated = 0.9;     // of the budget
constexpr double kLatencyShare = 0.5;  // less CPU than this: items mostly wait
constexpr double kBursty = 2.0;
constexpr int kPrefetch = 2;  // torch's own default
constexpr int kDeepPrefetch = 4;

}  // namespace

bool nearly_same(const LoaderSetting& a, const LoaderSetting& b) {
  constexpr int kFewParts = 5;
  return a.prefetch == b.prefetch && a.threads == b.threads &&
         kFewParts * std::abs(a.workers - b.workers) <= std::max(a.workers, b.workers);
}

double thread_speedup(int threads) {
  return 1 / (1 - kParallelPart + kParallelPart / std::max(1, threads));
}

double LoaderModel::predict(const LoaderSetting& setting) const {
  const int threads = std::max(1, setting.threads);
  double trainer = trainer_seconds;
  if (trainer_on_host)
    trainer *= thread_speedup(std::max(1, now.threads)) / thread_speedup(threads);
  if (setting.workers == 0) return trainer + work_seconds;
  const double trainer_cpu = trainer * trainer_cores * (trainer_on_host ? threads : 1);
  const double step =
      std::max({trainer, work_seconds / setting.workers, (work_cpu_seconds + trainer_cpu) / cores});
  if (threads == 1 || !trainer_on_host) return step;
  const double busy = std::min(setting.workers * cpu_share(), work_cpu_seconds / step);
  const double missing = std::max(0.0, busy + threads - cores);
  return step * (1 + kCrowdPenalty * missing / cores);
}

int LoaderModel::most_workers(const Policy& policy, std::optional<double> available_bytes) const {
  double most = policy.max_workers;
  if (cpu_share() > 0) most = std::min(most, std::ceil(cores / cpu_share()) + 1);
  if (available_bytes) {
    const double room = *available_bytes * policy.memory_share / policy.worker_bytes;
    most = std::min(most, std::floor(room) + now.workers);
  }
  return static_cast<int>(std::max<double>(most, 0));
}

std::optional<LoaderModel> model_loader(const Features& features, const StepTimes& times) {
  if (!features.loader || !features.host.cpu_budget_cores || times.step_seconds <= 0) {
    return std::nullopt;
  }
  const LoaderFacts& loader = *features.loader;
  LoaderModel model;
  model.now = {loader.workers, loader.prefetch, features.main_threads};
  model.cores = std::max(0.1, *features.host.cpu_budget_cores);
  model.step_seconds = times.step_seconds;
  model.wait_seconds = times.wait_seconds;
  model.spread_ratio = times.spread_ratio;
  model.trainer_on_host = features.device_is_host;
  model.trainer_seconds = times.step_seconds - times.wait_seconds;

  const std::optional<double> own = features.host.own_cores;
  double fetch_cpu = 0;  // of the training thread, per step
  if (loader.workers == 0) {
    model.work_seconds = times.wait_seconds;
    const double share = std::clamp(features.fetch_cpu_ratio.value_or(1.0), 0.02, 1.0);
    model.work_cpu_seconds = fetch_cpu = share * times.wait_seconds;
    model.confidence = features.fetch_cpu_ratio ? 0.9 : 0.6;
    model.saturated = own && *own > kSaturated * model.cores;
  } else {
    const std::optional<double> cores = worker_cores(features);
    const bool bound = times.wait_seconds > kInputBound * times.step_seconds;
    const double share = cores ? std::clamp(*cores / loader.workers, 0.02, 1.0) : 1.0;
    // Late input means that the workers work all the time. Otherwise only their CPU is known.
    model.work_seconds =
        bound ? loader.workers * times.step_seconds : share * loader.workers * times.step_seconds;
    model.work_cpu_seconds = share * loader.workers * times.step_seconds;
    model.confidence = bound && cores ? 0.8 : 0.5;
    model.saturated = own && cores && *own + *cores > kSaturated * model.cores;
  }
  if (own && model.trainer_seconds > 0) {
    const int threads = model.trainer_on_host ? std::max(1, model.now.threads) : 1;
    const double used = *own * times.step_seconds - fetch_cpu;
    model.trainer_cores = std::clamp(used / (model.trainer_seconds * threads), 0.3, 1.0);
  }
  return model;
}

LoaderSetting best_setting(const LoaderModel& model, const SettingRange& range,
                           const std::vector<LoaderSetting>& excluded) {
  const auto at = [&](int workers, int threads) {
    LoaderSetting setting{workers, model.now.prefetch, threads};
    if (workers == 0) setting.prefetch = 0;
    if (workers > 0 && model.now.workers == 0) {
      setting.prefetch = model.spread_ratio > kBursty ? kDeepPrefetch : kPrefetch;
    }
    return setting;
  };
  const auto step = [&](const LoaderSetting& setting) {
    const bool out = std::any_of(excluded.begin(), excluded.end(),
                                 [&](const LoaderSetting& one) { return nearly_same(one, setting); });
    return out ? HUGE_VAL : model.predict(setting);
  };
  // For a number of workers, the threads that suit it; the present ones unless others are clearly
  // better.
  const auto suited = [&](int workers) {
    LoaderSetting best = at(workers, model.now.threads);
    double least = step(best) * (1 - kTie);
    for (int threads = range.least_threads; threads <= range.most_threads; ++threads) {
      const LoaderSetting setting = at(workers, threads);
      if (step(setting) >= least) continue;
      least = step(setting);
      best = setting;
    }
    return best;
  };
  double least = model.predict(model.now);
  for (int workers = range.least_workers; workers <= range.most_workers; ++workers) {
    least = std::min(least, step(suited(workers)));
  }
  for (int workers = range.least_workers; workers <= range.most_workers; ++workers) {
    const LoaderSetting setting = suited(workers);
    if (step(setting) > least * (1 + kTie)) continue;
    // Where items mostly wait one more worker costs little, and evens out what the mean hides.
    const bool thin = workers > 0 && model.work_seconds / workers > kThinMargin * step(setting);
    const bool waits = model.cpu_share() < kLatencyShare && workers < range.most_workers;
    if (thin && waits && std::isfinite(step(suited(workers + 1)))) return suited(workers + 1);
    return setting;
  }
  return model.now;
}

}  // namespace gpuutil
