// Decides what is changed in a running training, one trial at a time (DESIGN 8). Lives on the
// engine's thread: everything comes in by calls, commands go out by poll(), nothing is done here.
// Deterministic given its inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/finding.h"
#include "profile/features.h"
#include "timeline/step.h"
#include "tune/change.h"
#include "tune/gate.h"
#include "tune/ledger.h"
#include "tune/loader_search.h"
#include "tune/offer_search.h"
#include "tune/policy.h"
#include "tune/recent.h"
#include "tune/trial.h"
#include "tune/watch.h"

namespace gpuutil {

struct ControllerOptions {
  Policy policy;
  std::vector<Change> replay;  // kept changes of an earlier run: applied at once, nothing is tried
  uint64_t seed = 1;
};

// A change that is predicted to gain and not made, with the call that would make it.
struct Withheld {
  Proposal proposal;
  std::string call;  // mon.apply("loader_workers")
  std::string why;
};

enum class Activity : uint8_t { waiting, idle, holding, trial, undoing, stopped };

constexpr std::string_view activity_name(Activity activity) {
  constexpr std::string_view names[] = {"waiting", "idle",    "holding",
                                        "trial",   "undoing", "stopped"};
  return names[static_cast<size_t>(activity)];
}

struct ControllerState {
  Activity activity = Activity::waiting;
  std::string text;                     // one line for people
  std::optional<double> foreign_cores;  // in our budget
  int64_t trial_ledger_id = 0;          // 0 where none
  int trial_steps = 0;
  double regret_spent_seconds = 0;
  double regret_granted_seconds = 0;
};

class Controller {
 public:
  explicit Controller(ControllerOptions options);

  // What is seen.
  void observe_step(const Step& step);
  void observe_features(const Features& features, std::vector<Finding> findings);
  void observe_host(const HostFeatures& host);  // at each look of the host's collector
  void set_run_length(std::optional<int64_t> steps);
  // The rung may only come down.
  void limit_rung(Rung rung) { policy_.rung = std::min(policy_.rung, rung); }

  // What is to be done. At most one command is unanswered at any time; every command is answered by
  // applied() or failed(), and after applied() by effective() when the first batch through the new
  // setting was delivered.
  std::optional<Command> poll(int64_t now_ns);
  void applied(int64_t command_id);
  void effective(int64_t command_id, int64_t step_index);
  // Before applied(): nothing was changed. After it: the change broke and must be undone.
  void failed(int64_t command_id, const std::string& reason);

  // By hand. They answer why it cannot be done; empty where it will be.
  std::string request_apply(const std::string& remedy);
  std::string request_value(const std::string& remedy, int64_t value);
  std::string request_revert(int64_t ledger_id);
  // Back to the user's own settings, and nothing is tried afterwards (STOP, detach, an error of
  // ours).
  void revert_all(const std::string& reason);
  // Nothing is asked of the hands any more, which now take everything out on their own. What was kept stays kept in
  // the ledger, for the recipe; a trial that was still measuring has no verdict.
  void run_ended();

  // Nothing is being measured, asked for or waited for: the run is known and left as it is.
  bool calm() const;
  ControllerState state(int64_t now_ns) const;
  const Ledger& ledger() const { return ledger_; }
  const std::vector<Withheld>& withheld() const { return withheld_; }
  // The code that makes everything in force permanent; empty where nothing is.
  std::string recipe_now() const { return recipe(ledger_.in_force()); }
  const Policy& policy() const { return policy_; }

 private:
  enum class Owner : uint8_t { trial, undo, replay, guard };
  struct Sent {
    Command command;
    Owner owner = Owner::trial;
  };
  struct Search {
    LoaderSearch numbers;
    OfferSearch offers;
  };

  std::optional<Command> send(Owner owner, CommandKind kind, int64_t ledger_id, std::string reason);
  std::optional<Command> next_of_trial(int64_t now_ns);
  std::optional<Command> next_undo();
  std::optional<Command> replay();
  std::optional<Command> guard();
  std::optional<Command> put_up(const Proposal& proposal);
  static LedgerRow row_of(const Proposal& proposal);
  void start(const Proposal& proposal, bool by_hand, bool in_force, bool by_epochs);
  void open_row();
  void close_trial(int64_t now_ns);
  void broke(int64_t ledger_id, const std::string& reason);
  void fill_row(LedgerRow* row, const TrialResult& result);
  void mark_in_force(LedgerRow* row, bool in_force);
  void second_look();
  bool consistent(const Features& features) const;
  bool starts_here(const Proposal& proposal) const;
  void choose(int64_t now_ns);
  Search& search_of(const Features& features);
  std::optional<Proposal> choose_for_loader(int64_t now_ns);
  void withhold(const Proposal& proposal, const std::string& why);
  void refuse(const Proposal& proposal, const std::string& why);
  std::optional<Proposal> choose_number(const LoaderModel& model, Search& search);
  std::optional<Proposal> choose_offer(const Search& search);
  std::optional<ThreadWish> thread_wish() const;
  std::vector<std::string> finding_ids() const;
  bool vetoed(const std::string& remedy) const;
  void show_provisional();
  void settings_changed();
  bool may_try(int64_t now_ns) const;
  bool quiet_tail() const;
  int burst() const;
  double elapsed_seconds(int64_t now_ns) const;

  Policy policy_;
  uint64_t seed_;
  std::vector<Change> replay_;
  bool replay_only_;

  Ledger ledger_;
  std::optional<Sent> unanswered_;
  std::map<std::pair<std::string, uint32_t>, int64_t> values_;  // of each setting that was touched
  std::map<int64_t, int64_t> applies_;  // the last apply command of each row
  int64_t next_command_ = 1;

  std::optional<Trial> trial_;
  int64_t trial_row_ = 0;      // 0 until the first command
  int64_t trial_command_ = 0;  // the last one
  LoaderSetting trial_from_;
  std::deque<int64_t> undo_;  // rows, in order
  std::string undo_reason_;
  std::map<int64_t, int> undo_failures_;
  struct Kept {
    Watch watch;
    Proposal proposal;
  };
  std::vector<Kept> kept_;  // in force and measured, oldest first; the last one is watched
  Suspicion suspicion_ = Suspicion::none;

  std::optional<Features> features_;
  std::vector<Finding> findings_;
  bool features_fresh_ = false;  // not yet looked at
  Recent recent_;
  EpochArm epochs_;
  ForeignLoad foreign_;
  double cores_sum_ = 0;  // own CPU under the present settings, for the next trial's "before"
  int cores_looks_ = 0;
  RegretBudget regret_;
  Backoff backoff_;
  std::map<uint32_t, Search> searches_;
  std::vector<Change> vetoed_;  // taken back by the user: never again unasked
  std::vector<Withheld> withheld_;
  std::vector<Proposal> by_hand_;
  std::vector<std::pair<uint32_t, std::string>> refused_;  // loader and remedy: a row says why not

  std::optional<int64_t> run_length_;
  int64_t step_ = 0;
  std::optional<int64_t> began_ns_;
  bool stopped_ = false;
  std::string stop_reason_;
  std::string idle_reason_ = "watching the first steps";
};

}  // namespace gpuutil
