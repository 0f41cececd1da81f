// The reading side of the engine: texts and JSON for the Python side.
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/state.h"
#include "engine/summaries.h"
#include "profile/waterfall.h"
#include "report/recipe.h"
#include "report/run_json.h"

namespace gpuutil {

std::vector<std::string> Engine::take_lines() {
  const std::lock_guard lock(mutex_);
  return std::exchange(state_->lines, {});
}

std::vector<EpochText> Engine::take_epochs() {
  const std::lock_guard lock(mutex_);
  return std::exchange(state_->texts, {});
}

std::vector<EpochText> Engine::epochs() {
  const std::lock_guard lock(mutex_);
  return {state_->epoch_texts.begin(), state_->epoch_texts.end()};
}

std::string Engine::run_json() {
  const std::lock_guard lock(mutex_);
  const State& state = *state_;
  RunSummary run;
  run.run = options_.run;
  run.run.id = state.run_id;
  run.run.started_unix_seconds = state.started_unix_seconds;
  run.run.apply = state.apply;
  run.run.ranks = state.ranks;
  run.device.kind = state.device_is_host ? "cpu" : "cuda";
  run.environment_json = options_.environment_json;
  if (state.host_sample) {
    run.cpu_budget_cores = state.host_sample->cpu_budget.cores;
    run.cpu_budget_source = state.host_sample->cpu_budget.source;
  }
  run.epochs.assign(state.epochs.begin(), state.epochs.end());
  run.budget = state.run_budget;
  run.profile = profile_summary(state.features, host_waterfall(state.window));
  run.findings = state.diagnosis.findings;
  run.not_measured = state.diagnosis.not_measured;
  run.ledger = state.controller.ledger().rows();
  run.loaders = state.loaders.names();
  run.missing = state.missing;
  run.overhead = state.overhead.whole(1);
  run.replay_path = replay_path();
  return gpuutil::run_json(run);
}

std::string Engine::replay_path() const {
  return options_.log_dir.empty() ? std::string() : options_.log_dir + "/report.json";
}

std::string Engine::findings_json() {
  const std::lock_guard lock(mutex_);
  return gpuutil::findings_json(state_->diagnosis.findings);
}

std::string Engine::ledger_json() {
  const std::lock_guard lock(mutex_);
  return gpuutil::ledger_json(state_->controller.ledger().rows(), state_->loaders.names());
}

std::string Engine::recipe() {
  const std::lock_guard lock(mutex_);
  return run_recipe(state_->controller.ledger().rows(), state_->loaders.names(), replay_path());
}

std::string Engine::state_line() {
  const std::lock_guard lock(mutex_);
  return state_->controller.state(now_ns()).text;
}

std::vector<std::pair<std::string, std::string>> Engine::postfix() {
  const std::lock_guard lock(mutex_);
  const Features& features = state_->features;
  std::vector<std::pair<std::string, std::string>> values;
  if (features.steps == 0) return values;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", features.step_seconds_p50 * 1e3);
  values.emplace_back("step", text);
  std::snprintf(text, sizeof text, "%.0f %%", features.input_wait_ratio * 100);
  values.emplace_back("input", text);
  return values;
}

}  // namespace gpuutil
