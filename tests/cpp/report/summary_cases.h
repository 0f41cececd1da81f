// Epochs to try the reports on: each as an engine would fill it, with findings made by the real
// rules.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "diagnose/engine.h"
#include "report/summary.h"

namespace gpuutil {

inline constexpr int64_t kMs = 1'000'000;

// Photographs decoded in the training process on two CPUs, as features and as an epoch.
inline Features photograph_features() {
  Features f;
  f.steps = 60;
  f.sampled_steps = 20;
  f.coverage_ratio = 0.11;
  f.step_seconds_p50 = 0.1105;
  f.step_seconds_p95 = 0.121;
  f.samples_per_step = 16;
  f.input_wait_ratio = 0.8;
  f.input_wait_seconds_p50 = 0.0884;
  f.fetch_cpu_ratio = 0.97;
  f.user_python_seconds = 0.0004;
  f.main_threads = 2;
  f.loader.emplace();
  f.loader->id = 1;
  f.loader->name = "PhotoDataset";
  f.loader->dataset = DatasetKind::map_style;
  f.loader->workers_changeable = true;
  f.host.cpu_budget_cores = 2;
  f.host.cpu_budget_source = "affinity: 2 CPUs";
  f.host.own_cores = 1.04;
  f.host.crowding_cores = 0;
  f.host.mask_cores = f.host.allowed_cores = 2;
  f.host.quotas_known = true;
  f.host.shm_size_bytes = f.host.shm_free_bytes = 8e9;
  f.host.open_descriptors = 60;
  f.host.descriptor_limit = 1024;
  return f;
}

inline void add_diagnosis(EpochSummary& epoch, const Features& features) {
  Diagnosis diagnosis = diagnose(features);
  epoch.findings = std::move(diagnosis.findings);
  epoch.not_measured = std::move(diagnosis.not_measured);
}

inline EpochSummary photograph_epoch() {
  EpochSummary e;
  e.epoch = 1;
  e.steps = 60;
  e.wall_seconds = 6.9;
  e.samples_per_second = 139.2;
  e.budget[Phase::input_wait] = 5520 * kMs;
  e.budget[Phase::forward] = 552 * kMs;
  e.budget[Phase::backward] = 620 * kMs;
  e.budget[Phase::optimizer] = 69 * kMs;
  e.budget[Phase::other] = 138 * kMs;
  e.budget[Phase::gpuutil] = 1 * kMs;
  e.profile.steps = 58;
  e.profile.step_seconds_p50 = 0.1105;
  e.profile.step_seconds_p95 = 0.121;
  e.profile.coverage_ratio = 0.11;
  const auto set = [&](Phase phase, double ratio) {
    e.profile.phase_ratio[static_cast<size_t>(phase)] = ratio;
  };
  set(Phase::input_wait, 0.80);
  set(Phase::forward, 0.08);
  set(Phase::backward, 0.09);
  set(Phase::optimizer, 0.01);
  set(Phase::other, 0.02);
  e.loaders = {{1, "PhotoDataset"}};
  e.foreign.cores = 0.03;
  e.foreign.budget_cores = 2;
  e.overhead = {1.2, 1.2e-5, 1};
  add_diagnosis(e, photograph_features());
  return e;
}

inline LedgerRow kept_row() {
  LedgerRow row;
  row.id = 1;
  row.changes = {{"loader_workers", 1, 0, 2}, {"main_threads", 0, 2, 1}};
  row.finding = "input_cpu_bound";
  row.reason = "80 % of the step waits for input, 2 CPUs allow at most 1.92x";
  row.exactness = Exactness::rounding;
  row.exactness_reason = "other thread count on the CPU";
  row.step = 42;
  row.before = {0.1105, 144.8, 0.0087};
  row.after = {0.0621, 257.6, 0.0079};
  row.speedup = Interval{1.71, 1.78, 1.84};
  row.outcome = Outcome::kept;
  row.in_force = true;
  row.undo = "mon.revert(1)";
  row.recipe = "DataLoader(..., num_workers=2)\ntorch.set_num_threads(1)";
  return row;
}

// The same job after the change.
inline EpochSummary tuned_epoch() {
  EpochSummary e = photograph_epoch();
  e.epoch = 3;
  e.steps = 180;
  e.wall_seconds = 11.2;
  e.samples_per_second = 257.6;
  e.budget = {};
  e.budget[Phase::input_wait] = 4500 * kMs;
  e.budget[Phase::forward] = 2680 * kMs;
  e.budget[Phase::backward] = 3010 * kMs;
  e.budget[Phase::optimizer] = 335 * kMs;
  e.budget[Phase::other] = 674 * kMs;
  e.budget[Phase::gpuutil] = 1 * kMs;
  e.profile.step_seconds_p50 = 0.0621;
  e.profile.coverage_ratio = 0.09;
  e.first_epoch = 1;
  e.first_step_seconds_p50 = 0.1105;
  e.changes = {kept_row()};
  Features f = photograph_features();
  f.step_seconds_p50 = 0.0621;
  f.input_wait_ratio = 0.40;
  f.input_wait_seconds_p50 = 0.0248;
  f.main_threads = 1;
  f.loader->workers = 2;
  f.workers = {{11, 0.72, 0.05}, {12, 0.72, 0.05}};
  f.host.own_cores = 0.50;
  f.host.worker_cores = 1.44;
  add_diagnosis(e, f);
  return e;
}

inline EpochSummary healthy_epoch() {
  EpochSummary e = photograph_epoch();
  e.epoch = 2;
  e.budget = {};
  e.budget[Phase::input_wait] = 28 * kMs;
  e.budget[Phase::evaluation] = 500 * kMs;
  e.budget[Phase::forward] = 2550 * kMs;
  e.budget[Phase::backward] = 2870 * kMs;
  e.budget[Phase::optimizer] = 318 * kMs;
  e.budget[Phase::other] = 634 * kMs;
  e.first_epoch = 1;
  e.first_step_seconds_p50 = 0.1101;
  Features f = photograph_features();
  f.input_wait_ratio = 0.004;
  f.input_wait_seconds_p50 = 0.0004;
  add_diagnosis(e, f);
  return e;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gpuutil
