#include "tune/controller.h"

#include <algorithm>
#include <cstdio>

namespace gpuutil {

namespace {

constexpr int kUndoAttempts = 3;

}  // namespace

Controller::Controller(ControllerOptions options)
    : policy_(options.policy),
      seed_(options.seed),
      replay_(std::move(options.replay)),
      replay_only_(!replay_.empty()) {}

void Controller::observe_step(const Step& step) {
  if (!began_ns_) began_ns_ = step.begin_ns;
  step_ = step.index;
  const StepSample sample = step_sample(step, foreign_.holds(policy_));
  recent_.add(sample);
  epochs_.add(sample, true);
  epochs_.clear_values();
  if (trial_) {
    trial_->observe(sample);
    show_provisional();
  } else if (!kept_.empty() && !stopped_ && undo_.empty()) {
    const Suspicion suspicion = kept_.back().watch.observe(sample, policy_);
    if (suspicion != Suspicion::none) suspicion_ = suspicion;
  }
}

// The fast path keeps before it has verified: the ledger says so at once.
void Controller::show_provisional() {
  LedgerRow* row = ledger_.find(trial_row_);
  const TrialResult& result = trial_->result();
  if (row == nullptr || row->provisional == result.provisional || trial_->done()) return;
  fill_row(row, result);
  row->provisional = result.provisional;
  row->outcome = result.provisional ? Outcome::kept : Outcome::running;
}

void Controller::observe_features(const Features& features, std::vector<Finding> findings) {
  features_ = features;
  findings_ = std::move(findings);
  features_fresh_ = true;
}

void Controller::observe_host(const HostFeatures& host) {
  foreign_.observe(host);
  if (!host.own_cores || foreign_.holds(policy_)) return;
  const double cores = *host.own_cores + host.worker_cores.value_or(0);
  if (trial_) {
    trial_->observe_cores(cores);
  } else {
    cores_sum_ += cores;
    ++cores_looks_;
  }
}

void Controller::set_run_length(std::optional<int64_t> steps) { run_length_ = steps; }

std::optional<Command> Controller::poll(int64_t now_ns) {
  if (!began_ns_) began_ns_ = now_ns;
  if (trial_) trial_->check_deadline(now_ns);
  if (unanswered_) return std::nullopt;
  if (trial_) {
    const TrialResult& result = trial_->result();
    const double left = regret_.left(elapsed_seconds(now_ns), policy_);
    if (!trial_->done() && !trial_->setup().by_hand && !trial_->setup().in_force) {
      if (result.regret_seconds > left) {
        trial_->give_up(Outcome::inconclusive, "measuring on would cost more than tuning may");
      } else if (quiet_tail() && !result.provisional) {
        trial_->give_up(Outcome::inconclusive, "the run is about to end");
      }
    }
    if (std::optional<Command> command = next_of_trial(now_ns)) return command;
    if (!trial_->done()) return std::nullopt;
    close_trial(now_ns);
  }
  if (std::optional<Command> command = next_undo()) return command;
  if (stopped_) return std::nullopt;
  if (replay_only_) return replay();
  if (std::optional<Command> command = guard()) return command;
  choose(now_ns);
  return trial_ ? next_of_trial(now_ns) : std::nullopt;
}

std::optional<Command> Controller::send(Owner owner, CommandKind kind, int64_t ledger_id,
                                        std::string reason) {
  Command command;
  command.id = next_command_++;
  command.kind = kind;
  command.ledger_id = ledger_id;
  command.changes = ledger_.find(ledger_id)->changes;
  command.reason = std::move(reason);
  unanswered_ = Sent{command, owner};
  return command;
}

std::optional<Command> Controller::next_of_trial(int64_t now_ns) {
  const std::optional<CommandKind> kind = trial_->wanted();
  if (!kind) return std::nullopt;
  if (trial_row_ == 0) open_row();
  trial_->sent(now_ns);
  const LedgerRow& row = *ledger_.find(trial_row_);
  const std::string& conclusion = trial_->result().conclusion;
  std::optional<Command> command =
      send(Owner::trial, *kind, trial_row_, conclusion.empty() ? row.reason : conclusion);
  trial_command_ = command->id;
  return command;
}

void Controller::open_row() {
  const Proposal& proposal = trial_->proposal();
  LedgerRow row = row_of(proposal);
  row.step = step_;
  trial_row_ = ledger_.add(std::move(row));
}

std::optional<Command> Controller::next_undo() {
  while (!undo_.empty()) {
    const LedgerRow* row = ledger_.find(undo_.front());
    if (row != nullptr && row->in_force) {
      return send(Owner::undo, CommandKind::revert, row->id, undo_reason_);
    }
    undo_.pop_front();
  }
  return std::nullopt;
}

std::optional<Command> Controller::replay() {
  if (replay_.empty()) return std::nullopt;
  LedgerRow row;
  row.changes = std::move(replay_);
  replay_.clear();
  row.reason = "kept in the run that is replayed";
  row.step = step_;
  row.recipe = recipe(row.changes);
  const int64_t id = ledger_.add(std::move(row));
  return send(Owner::replay, CommandKind::apply, id, "replay");
}

void Controller::mark_in_force(LedgerRow* row, bool in_force) {
  row->in_force = in_force;
  row->undo = in_force ? "mon.revert(" + std::to_string(row->id) + ")" : "";
  if (!in_force) {
    applies_.erase(row->id);
    std::erase_if(kept_, [&](const Kept& kept) { return kept.watch.ledger_id() == row->id; });
  }
  settings_changed();
}

void Controller::settings_changed() {
  recent_.clear();
  features_fresh_ = false;
  cores_sum_ = 0;
  cores_looks_ = 0;
}

void Controller::applied(int64_t command_id) {
  if (!unanswered_ || unanswered_->command.id != command_id) return;
  const Sent sent = *unanswered_;
  unanswered_.reset();
  LedgerRow* row = ledger_.find(sent.command.ledger_id);
  const bool apply = sent.command.kind == CommandKind::apply;
  for (const Change& change : sent.command.changes) {
    values_[{change.remedy, change.subject}] = apply ? change.to : change.from;
  }
  if (apply) applies_[row->id] = command_id;
  if (sent.owner == Owner::trial) {
    trial_->applied();
    row->in_force = trial_->in_force();
    row->undo = row->in_force ? "mon.revert(" + std::to_string(row->id) + ")" : "";
    return settings_changed();
  }
  mark_in_force(row, apply);
  if (sent.owner == Owner::guard) row->conclusion = "protective";
  if (sent.owner == Owner::replay || sent.owner == Owner::guard) {
    row->outcome = Outcome::kept;
    if (stopped_) undo_.push_back(row->id);  // what was asked for before everything was taken back
    return;
  }
  undo_failures_.erase(row->id);
  if (row->outcome != Outcome::failed) row->outcome = Outcome::reverted;
  row->conclusion = undo_reason_;
}

void Controller::effective(int64_t command_id, int64_t step_index) {
  if (unanswered_ && unanswered_->command.id == command_id) applied(command_id);
  if (trial_ && command_id == trial_command_) trial_->effective(step_index);
}

void Controller::failed(int64_t command_id, const std::string& reason) {
  if (!unanswered_ || unanswered_->command.id != command_id) {
    // It was applied before: whatever it changed is broken and must go.
    const auto known = std::find_if(applies_.begin(), applies_.end(),
                                    [&](const auto& entry) { return entry.second == command_id; });
    if (known != applies_.end()) broke(known->first, reason);
    return;
  }
  const Sent sent = *unanswered_;
  unanswered_.reset();
  if (sent.owner == Owner::trial) return trial_->failed(reason);
  LedgerRow* row = ledger_.find(sent.command.ledger_id);
  if (sent.owner == Owner::replay || sent.owner == Owner::guard) {
    row->outcome = Outcome::failed;
    row->conclusion = reason;
    if (sent.owner == Owner::guard) vetoed_.insert(vetoed_.end(), row->changes.begin(), row->changes.end());
    return;
  }
  if (++undo_failures_[row->id] < kUndoAttempts) return;
  row->outcome = Outcome::failed;
  row->conclusion = "could not be taken back: " + reason;
  // What lies beneath it cannot be taken back either, as long as it is in force.
  std::erase_if(undo_, [&](int64_t id) {
    const std::vector<int64_t> order = ledger_.undo_order(id);
    return std::find(order.begin(), order.end(), row->id) != order.end();
  });
  stopped_ = true;
  stop_reason_ = "a change could not be taken back";
}

void Controller::broke(int64_t ledger_id, const std::string& reason) {
  if (trial_ && ledger_id == trial_row_) return trial_->give_up(Outcome::failed, reason, true);
  LedgerRow* row = ledger_.find(ledger_id);
  if (row == nullptr || !row->in_force) return;
  request_revert(ledger_id);
  row->outcome = Outcome::failed;
  undo_reason_ = reason;
}

void Controller::fill_row(LedgerRow* row, const TrialResult& result) {
  row->outcome = result.outcome;
  row->conclusion = result.conclusion;
  row->provisional = false;
  if (!result.speedup) return;
  row->speedup = result.speedup;
  row->before = result.before;
  row->after = result.after;
}

void Controller::close_trial(int64_t now_ns) {
  const Trial trial = std::move(*trial_);
  trial_.reset();
  const int64_t id = trial_row_;
  trial_row_ = 0;
  const TrialResult& result = trial.result();
  regret_.spend(result.regret_seconds);
  LedgerRow* row = ledger_.find(id);
  if (row == nullptr) {
    // Given up before anything was changed: no row, and no verdict on the proposal.
    backoff_.sleep(now_ns, trial.setup().step_seconds, 0, policy_);
    idle_reason_ = result.conclusion;
    return;
  }
  fill_row(row, result);
  const bool kept = trial.in_force();
  if (result.undo_failed) {
    stopped_ = true;
    stop_reason_ = "a change could not be taken back";
  }
  const Proposal& proposal = trial.proposal();
  if (trial.setup().in_force) {
    if (kept) {
      row->outcome = Outcome::kept;
      for (Kept& known : kept_) {
        if (known.watch.ledger_id() == id) known.watch.reassured(result.before_work_seconds);
      }
      settings_changed();
      return;
    }
    return mark_in_force(row, false);
  }
  mark_in_force(row, kept);
  if (features_ && features_->loader) {
    const auto search = searches_.find(features_->loader->id);
    if (search != searches_.end()) {
      const bool offered = find_offer(*features_->loader, proposal.changes.front().remedy) != nullptr;
      if (offered) {
        search->second.offers.concluded(proposal, result.outcome);
      } else {
        search->second.numbers.concluded(trial_from_, proposal, result.outcome);
      }
    }
  }
  if (kept && !trial.setup().by_hand && result.before_work_seconds > 0 && !result.undo_failed) {
    kept_.push_back(Kept{Watch(id, result.before_work_seconds, proposal.burst_to), proposal});
  }
  idle_reason_ = "looking at the run with the present settings";
}

void Controller::revert_all(const std::string& reason) {
  stopped_ = true;
  stop_reason_ = reason;
  undo_reason_ = reason;
  by_hand_.clear();
  replay_.clear();
  suspicion_ = Suspicion::none;
  if (trial_) trial_->give_up(Outcome::reverted, reason, true);
  undo_.clear();
  undo_failures_.clear();
  for (auto row = ledger_.rows().rbegin(); row != ledger_.rows().rend(); ++row) {
    if (row->in_force && row->id != trial_row_) undo_.push_back(row->id);
  }
}

void Controller::run_ended() {
  stopped_ = true;
  stop_reason_ = "the run ended";
  undo_.clear();
  by_hand_.clear();
  unanswered_.reset();
  if (!trial_) return;
  LedgerRow* row = ledger_.find(trial_row_);
  const bool begun_kept = trial_->setup().in_force || trial_->result().provisional;
  const std::string conclusion = trial_->result().provisional
                                     ? "the run ended before it was verified"
                                     : "the run ended before a verdict";
  trial_.reset();
  trial_row_ = 0;
  if (row == nullptr) return;
  row->outcome = begun_kept ? Outcome::kept : Outcome::inconclusive;
  row->conclusion = conclusion;
  if (!begun_kept) mark_in_force(row, false);
}

std::string Controller::request_revert(int64_t ledger_id) {
  const LedgerRow* row = ledger_.find(ledger_id);
  if (row == nullptr) return "no such row in the ledger: " + std::to_string(ledger_id);
  const bool on_trial = trial_ && trial_row_ == ledger_id;
  if (!row->in_force && !on_trial) {
    return "row " + std::to_string(ledger_id) +
           " is not in force: " + std::string(outcome_name(row->outcome));
  }
  vetoed_.insert(vetoed_.end(), row->changes.begin(), row->changes.end());
  undo_reason_ = "taken back by hand";
  if (trial_) {
    trial_->give_up(on_trial ? Outcome::reverted : Outcome::inconclusive,
                    on_trial ? undo_reason_ : "something else was taken back by hand", on_trial);
  }
  for (const int64_t id : ledger_.undo_order(ledger_id)) {
    const bool queued = std::find(undo_.begin(), undo_.end(), id) != undo_.end();
    if (!queued && !(trial_ && id == trial_row_)) undo_.push_back(id);
  }
  return "";
}

double Controller::elapsed_seconds(int64_t now_ns) const {
  return began_ns_ ? static_cast<double>(now_ns - *began_ns_) * 1e-9 : 0;
}

bool Controller::quiet_tail() const {
  if (!run_length_) return false;
  return static_cast<double>(step_) >=
         (1 - policy_.quiet_tail_ratio) * static_cast<double>(*run_length_);
}

bool Controller::calm() const {
  return features_ && !trial_ && !unanswered_ && undo_.empty() && by_hand_.empty() &&
         !foreign_.holds(policy_);
}

ControllerState Controller::state(int64_t now_ns) const {
  ControllerState state;
  state.foreign_cores = foreign_.cores();
  state.regret_spent_seconds = regret_.spent() + (trial_ ? trial_->result().regret_seconds : 0);
  state.regret_granted_seconds = regret_.granted(elapsed_seconds(now_ns), policy_);
  const bool undoing = !undo_.empty() || (unanswered_ && unanswered_->owner == Owner::undo);
  if (trial_) {
    state.activity = Activity::trial;
    state.trial_ledger_id = trial_row_;
    state.trial_steps = trial_->result().steps;
    state.text = "trying " + describe(trial_->proposal().changes) + ", " +
                 std::to_string(state.trial_steps) + " steps so far";
  } else if (undoing) {
    state.activity = Activity::undoing;
    state.text = "taking changes back: " + undo_reason_;
  } else if (stopped_) {
    state.activity = Activity::stopped;
    state.text = stop_reason_;
  } else if (replay_only_) {
    state.activity = Activity::idle;
    state.text = "replaying an earlier run: nothing is tried";
  } else if (foreign_.holds(policy_)) {
    state.activity = Activity::holding;
    char text[80];
    std::snprintf(text, sizeof text, "holding: others use %.1f cores of ours", *foreign_.cores());
    state.text = text;
  } else {
    state.activity = features_ ? Activity::idle : Activity::waiting;
    state.text = idle_reason_;
  }
  return state;
}

}  // namespace gpuutil
