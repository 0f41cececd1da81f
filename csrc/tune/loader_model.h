// What would a step take with another number of workers and of main threads? A model of one loader
// and its trainer on a budget of cores, from what was measured under the present setting. Pure; a
// guess that trials check.
#pragma once

#include <optional>
#include <vector>

#include "profile/features.h"
#include "tune/policy.h"
#include "tune/recent.h"

namespace gpuutil {

struct LoaderSetting {
  int workers = 0;
  int prefetch = 0;  // batches per worker; 0 without workers
  int threads = 0;   // of the trainer; 0 where unknown: then never changed

  bool operator==(const LoaderSetting&) const = default;
};

// Whether a trial of one tells about the other: the same but for a fifth of many workers.
bool nearly_same(const LoaderSetting& a, const LoaderSetting& b);

struct LoaderModel {
  LoaderSetting now;
  double cores = 1;         // CPU budget
  double step_seconds = 0;  // measured
  double wait_seconds = 0;  // measured, of it
  double spread_ratio = 1;
  double work_seconds = 0;      // to make one step's input, in one process
  double work_cpu_seconds = 0;  // of it on a CPU
  double trainer_seconds = 0;   // the rest of the step, at now.threads
  double trainer_cores = 1;     // that each of its threads keeps busy meanwhile, 0..1
  bool trainer_on_host = true;  // threads matter
  bool saturated = false;       // the budget was used up while this was measured
  double confidence = 0.5;

  double cpu_share() const { return work_seconds > 0 ? work_cpu_seconds / work_seconds : 1; }
  double wait_ratio() const { return step_seconds > 0 ? wait_seconds / step_seconds : 0; }

  // Seconds of a step under `setting`, and the same relative to what was measured under `now`.
  double predict(const LoaderSetting& setting) const;
  double gain(const LoaderSetting& setting) const { return 1 - predict(setting) / predict(now); }

  // Workers that fill the budget or the memory; no setting above it makes sense.
  int most_workers(const Policy& policy, std::optional<double> available_bytes) const;
};

// How many times faster `threads` threads do a trainer's step than one. An honest middle between
// the 1.1 and the 1.9 that two threads gave small networks.
double thread_speedup(int threads);

// std::nullopt where something needed is not known: no loader, no CPU budget, too few steps.
std::optional<LoaderModel> model_loader(const Features& features, const StepTimes& times);

struct SettingRange {
  int least_workers = 0;
  int most_workers = 0;
  int least_threads = 0;
  int most_threads = 0;
};

// The setting with the least predicted step in the range; of those within 2 % of it the one with
// the fewest workers, plus one where items mostly wait and the margin is thin. The present setting
// where the range has none. What is nearly the same as an `excluded` one is passed over.
LoaderSetting best_setting(const LoaderModel& model, const SettingRange& range,
                           const std::vector<LoaderSetting>& excluded);

}  // namespace gpuutil
