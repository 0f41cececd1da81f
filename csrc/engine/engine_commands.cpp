// The engine's answers to the hands' side: facts of loaders and of the process, commands and what became of them.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/state.h"

namespace gpuutil {

void Engine::set_loader(LoaderFacts facts) {
  const std::lock_guard lock(mutex_);
  state_->loaders.set(std::move(facts));
}

void Engine::remove_loader(uint32_t id) {
  const std::lock_guard lock(mutex_);
  state_->loaders.remove(id);
}

void Engine::set_process(bool device_is_host, int32_t main_threads, int32_t ranks) {
  const std::lock_guard lock(mutex_);
  state_->device_is_host = device_is_host;
  state_->main_threads = main_threads;
  state_->ranks = ranks;
}

void Engine::limit_apply(const std::string& rung) {
  const std::lock_guard lock(mutex_);
  const auto limit = rung_from_name(rung);
  const auto now = rung_from_name(state_->apply);
  if (!limit || (now && *now <= *limit)) return;
  state_->apply = rung;
  state_->controller.limit_rung(*limit);
}

void Engine::set_hook_cost(double ns) {
  const std::lock_guard lock(mutex_);
  state_->overhead.set_hook_cost(ns);
}

void Engine::add_own_time(int64_t duration_ns) {
  const std::lock_guard lock(mutex_);
  state_->overhead.add_own_time(duration_ns);
}

// ---- commands

bool Engine::has_command() const {
  const std::lock_guard lock(mutex_);
  return state_->command.has_value();
}

std::optional<Command> Engine::next_command() {
  const std::lock_guard lock(mutex_);
  if (!state_->command || state_->command_taken) return std::nullopt;
  state_->command_taken = true;
  return state_->command;
}

void Engine::command_applied(int64_t id) {
  const std::lock_guard lock(mutex_);
  state_->controller.applied(id);
}

void Engine::command_effective(int64_t id) {
  const std::lock_guard lock(mutex_);
  fold_locked();  // steps that ended before now are before the change
  state_->assembler.mark(now_ns(), kStepChanged);
  if (state_->command && state_->command->id == id) {
    for (const Change& change : state_->command->changes) {
      const bool revert = state_->command->kind == CommandKind::revert;
      if (change.remedy == "main_threads") {
        state_->main_threads = static_cast<int32_t>(revert ? change.from : change.to);
      }
    }
    state_->command.reset();
  }
  state_->controller.effective(id, next_step_);
  tune_locked(now_ns());
}

void Engine::command_failed(int64_t id, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (state_->command && state_->command->id == id) state_->command.reset();
  state_->controller.failed(id, reason);
  tune_locked(now_ns());
}

std::string Engine::request_apply(const std::string& remedy, std::optional<int64_t> value) {
  const std::lock_guard lock(mutex_);
  fold_locked();
  look_locked();
  std::string answer = value ? state_->controller.request_value(remedy, *value)
                             : state_->controller.request_apply(remedy);
  tune_locked(now_ns());
  return answer;
}

std::string Engine::request_revert(int64_t ledger_id) {
  const std::lock_guard lock(mutex_);
  std::string answer = state_->controller.request_revert(ledger_id);
  tune_locked(now_ns());
  return answer;
}

void Engine::revert_all(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  state_->controller.revert_all(reason);
  tune_locked(now_ns());
}

}  // namespace gpuutil
