// One trial: a change applied and measured against the run without it, then kept or taken back
// (DESIGN 8). A state machine on the engine's thread: steps and answers of the hands go in, at most
// one wish to flip comes out. It knows neither ids nor the ledger; the controller does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tune/arm.h"
#include "tune/ledger.h"
#include "tune/policy.h"
#include "tune/trial_stats.h"

namespace gpuutil {

struct TrialSetup {
  Proposal proposal;
  bool in_force =
      false;  // a second look at a kept change: it begins applied and stays so unless it loses
  bool by_hand = false;     // asked for: measured once, kept whatever comes out
  bool epoch_mode = false;  // compare whole epochs
  double step_seconds = 0;  // the usual step, for how many steps a block needs; 0 where unknown
  uint64_t seed = 1;
};

struct TrialResult {
  Outcome outcome = Outcome::running;
  std::string conclusion;
  Measured before;
  Measured after;
  std::optional<Interval> speedup;
  double before_work_seconds = 0;  // a unit of work without the change; 0 where not measured
  bool provisional = false;
  bool undo_failed = false;  // the hands could not take it back
  int steps = 0;
  double regret_seconds = 0;  // lost against always running the better arm
};

class Trial {
 public:
  Trial(TrialSetup setup, const Policy& policy);

  // Every step, in order. Steps before the first flip are the baseline; the controller may begin
  // with recent ones.
  void observe(const StepSample& sample);
  // CPU that this process and its workers use now, in cores.
  void observe_cores(double cores);
  void check_deadline(int64_t now_ns);

  // A flip to ask of the hands now; after sent(), nothing until they have answered.
  std::optional<CommandKind> wanted() const;
  void sent(int64_t now_ns);
  void applied();                      // the hands have begun: from here on it must be undone
  void effective(int64_t step_index);  // the first batch through the new setting was in this step
  void failed(const std::string& reason);  // the flip did not happen, nothing changed

  // Ends it: at the setting it began with, or without the change where `undo`.
  void give_up(Outcome outcome, const std::string& reason, bool undo = false);

  bool done() const { return stage_ == Stage::done; }
  bool in_force() const { return in_force_; }
  bool awaiting_answer() const { return sent_at_.has_value(); }
  const TrialResult& result() const { return result_; }
  const Proposal& proposal() const { return setup_.proposal; }
  const TrialSetup& setup() const { return setup_; }

 private:
  enum class Stage : uint8_t { measuring, flipping, settling, concluding, done };

  int block_values() const;  // how many values make the current block
  void block_step();
  void close_block();
  void flip_to(bool in_force);
  bool try_fast_path();
  bool clearly_faster();
  void judge();
  void conclude(Outcome outcome, const std::string& reason, bool end_in_force);
  void finish();
  void restart_by_epochs();
  void verify_by_epoch();
  void take_figures(const Comparison& comparison);
  void count_regret(const StepSample& sample);
  const std::vector<double>& values() const;
  int burst() const;  // of the arm that runs now
  int block_steps() const;
  double step_work() const;

  TrialSetup setup_;
  Policy policy_;
  Stage stage_ = Stage::measuring;
  bool in_force_;
  bool target_ = false;                   // of the flip under way
  bool end_in_force_ = false;             // where it is to end, once concluding
  std::optional<int64_t> sent_at_;        // a command that was not answered yet
  std::optional<int64_t> waiting_since_;  // answered, not yet effective
  int waited_steps_ = 0;
  int undo_attempts_ = 0;
  std::optional<int64_t> effective_step_;
  int settle_steps_ = 0;
  int flips_ = 0;

  Random random_;
  int block_steps_ = 0;
  int extra_steps_ = 0;  // of the block under way, drawn
  int first_blocks_ = 0;
  int more_blocks_ = 0;
  int extends_ = 0;
  int blocks_wanted_ = 0;
  bool verifying_ = false;
  bool fast_tried_ = false;
  std::vector<Block> blocks_;
  StepArm arm_;
  EpochArm epochs_;
  int held_steps_ = 0;  // in a row
  double held_seconds_ = 0;
  bool counts_samples_ = true;
  double work_ = 1;  // of a step, to turn seconds per work into seconds per step

  struct Cores {
    double sum = 0;
    int looks = 0;
  };
  Cores cores_before_;
  Cores cores_after_;
  int steps_after_ = 0;  // steps with the change in force
  int steps_back_ = 0;   // steps without it after it was first in force
  double live_regret_ = 0;
  TrialResult result_;
};

}  // namespace gpuutil
