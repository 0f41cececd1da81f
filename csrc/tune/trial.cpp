#include "tune/trial.h"

#include <algorithm>
#include <cmath>

#include "base/robust.h"

namespace gpuutil {

namespace {

// How a trial is cut into blocks. Short blocks in many turns beat long ones in few: slow spells of
// a shared machine last longer than a block and so fall on both arms. A block must still be long
// against the scheduler's time slices.
constexpr double kMinBlockSeconds = 0.03;
constexpr int kMaxBlockSteps = 400;
constexpr int kBlockSteps = 10;
constexpr int kCheapBlockSteps = 8;
constexpr int kJitter = 2;   // blocks are up to 1/2 longer
constexpr int kMinRuns = 4;  // means over bursts in a block
constexpr int kVerifySteps = 24;
constexpr int kFirstEpochs = 2;
constexpr int kVerifyEpochs = 4;
constexpr int kMaxSteps = 20'000;  // a run that never gives clean steps must not hold a trial open

// A slowdown so clear after the first steps that measuring on only costs.
constexpr double kClearlySlower = 1.1;
constexpr double kCostlyStep = 1.5;
constexpr int kUndoAttempts = 3;

}  // namespace

Trial::Trial(TrialSetup setup, const Policy& policy)
    : setup_(std::move(setup)),
      policy_(policy),
      in_force_(setup_.in_force),
      random_(setup_.seed),
      arm_(burst()) {
  const Proposal& proposal = setup_.proposal;
  int steps = proposal.cheap_flip ? kCheapBlockSteps : kBlockSteps;
  if (setup_.step_seconds > 0) {
    const double needed = std::ceil(kMinBlockSeconds / setup_.step_seconds);
    steps = std::max(steps, static_cast<int>(std::min<double>(needed, kMaxBlockSteps)));
  }
  block_steps_ = steps;
  settle_steps_ = std::max(policy_.min_settle_steps, proposal.settle_steps);
  // Blocks to the first verdict: enough turns to see the scatter between them, fewer where each is
  // dear.
  const int burst_steps = kMinRuns * std::max(proposal.burst_from, proposal.burst_to);
  const int turn = std::max(block_steps_, burst_steps) + settle_steps_;
  if (setup_.epoch_mode) {
    first_blocks_ = 5;
    more_blocks_ = 4;
  } else if (proposal.cheap_flip) {
    first_blocks_ = 13;
    more_blocks_ = 8;
  } else {
    first_blocks_ = turn <= 20 ? 9 : turn <= 40 ? 7 : 5;
    more_blocks_ = turn <= 20 ? 8 : turn <= 40 ? 6 : 4;
  }
  blocks_wanted_ = first_blocks_;
}

const std::vector<double>& Trial::values() const {
  return setup_.epoch_mode ? epochs_.values() : arm_.values();
}

double Trial::step_work() const {
  return setup_.epoch_mode ? epochs_.step_work() : arm_.step_work();
}

int Trial::burst() const {
  return std::max(1, in_force_ ? setup_.proposal.burst_to : setup_.proposal.burst_from);
}

int Trial::block_steps() const {
  const int steps = block_steps_ + extra_steps_;
  return burst() > 1 ? std::max(steps, kMinRuns * burst()) : steps;
}

int Trial::block_values() const {
  if (setup_.epoch_mode) {
    return verifying_ ? kVerifyEpochs : blocks_.size() < 2 ? kFirstEpochs : 1;
  }
  int steps = block_steps();
  if (blocks_.empty()) steps = std::max(steps, policy_.baseline_steps);
  if (verifying_) steps = std::max(steps, kVerifySteps);
  return (steps + burst() - 1) / burst();
}

void Trial::observe(const StepSample& seen) {
  if (stage_ == Stage::done) return;
  StepSample sample = seen;
  if (setup_.by_hand) sample.held = false;  // whoever asks does not want to wait for a quiet machine
  ++result_.steps;
  if (in_force_) ++steps_after_;
  if (!in_force_ && flips_ > 0) ++steps_back_;
  count_regret(sample);
  if (sent_at_ || waiting_since_) ++waited_steps_;
  held_steps_ = sample.held ? held_steps_ + 1 : 0;
  held_seconds_ = sample.held ? held_seconds_ + sample.seconds : 0;
  counts_samples_ = counts_samples_ && sample.counts_samples;

  const bool measuring = stage_ == Stage::measuring;
  epochs_.add(sample, measuring);
  if (stage_ == Stage::settling) {
    if (sample.index - *effective_step_ < settle_steps_) return;
    stage_ = Stage::measuring;
    arm_ = StepArm(burst());
    return;
  }
  if (!measuring) return;
  if (held_steps_ > policy_.max_held_steps && held_seconds_ > policy_.max_held_seconds) {
    return give_up(Outcome::inconclusive, "others on this machine took CPU all along");
  }
  if (result_.steps > kMaxSteps) {
    return give_up(Outcome::inconclusive, "too few comparable steps");
  }
  if (!setup_.epoch_mode && epochs_.epoch_steps() &&
      *epochs_.epoch_steps() < policy_.epoch_mode_steps) {
    if (!verifying_) return restart_by_epochs();
    if (!epochs_.values().empty()) return verify_by_epoch();
  }
  arm_.add(sample);
  block_step();
}

void Trial::block_step() {
  if (blocks_.size() == 1 && !fast_tried_ && try_fast_path()) return;
  if (static_cast<int>(values().size()) < block_values()) return;
  close_block();
  if (verifying_) {
    verifying_ = result_.provisional = false;
    const std::optional<Comparison> comparison = compare(blocks_, setup_.seed);
    if (comparison && decide(*comparison, policy_, false) == Decision::keep) {
      take_figures(*comparison);
      return conclude(Outcome::kept, "verified", true);
    }
  }
  if (blocks_.size() % 2 == 0 && clearly_faster()) {
    return conclude(Outcome::kept, "clearly faster", true);
  }
  if (setup_.by_hand && blocks_.size() == 2) {
    if (const std::optional<Comparison> comparison = compare(blocks_, setup_.seed)) {
      take_figures(*comparison);
    }
    return conclude(Outcome::kept, "asked for by hand", true);
  }
  if (static_cast<int>(blocks_.size()) < blocks_wanted_) return flip_to(!in_force_);
  judge();
}

void Trial::close_block() {
  blocks_.push_back(Block{in_force_, values()});
  work_ = step_work();
  // Blocks of unequal length: what recurs every so many steps (a collection of garbage, a log line)
  // must not fall on the same arm again and again.
  extra_steps_ = static_cast<int>(random_.below(static_cast<uint64_t>(block_steps_ / kJitter) + 1));
  arm_ = StepArm(burst());
  epochs_.clear_values();
}

// After the first few steps with the change: keep provisionally or undo at once where the arms do
// not overlap. True where that was decided and the block must not go on as usual.
bool Trial::try_fast_path() {
  if (setup_.in_force || setup_.by_hand) return false;
  const int runs = (policy_.fast_steps + burst() - 1) / burst();
  const int needed = setup_.epoch_mode ? kFirstEpochs
                     : burst() > 1     ? std::max(runs, kMinRuns)
                                       : runs;
  const std::vector<double>& after = values();
  if (static_cast<int>(after.size()) < needed) return false;
  fast_tried_ = true;
  const std::vector<double>& before = blocks_.front().values;
  const double ratio = *median(before) / *median(after);
  const std::vector<Block> both{blocks_.front(), Block{in_force_, after}};
  const std::optional<Comparison> comparison = compare(both, setup_.seed);
  if (!comparison) return false;
  if (all_below(before, after) && ratio < 1 / kClearlySlower) {
    close_block();
    take_figures(*comparison);
    conclude(Outcome::undone, "clearly slower", false);
    return true;
  }
  const Proposal& proposal = setup_.proposal;
  const double predicted = (proposal.gain_low + proposal.gain_high) / 2;
  if (proposal.saving || predicted < policy_.fast_gain) return false;
  if (!all_below(after, before) || ratio < 1 + policy_.keep_gain) return false;
  verifying_ = true;
  result_.provisional = true;
  take_figures(*comparison);
  return false;
}

// A large gain was predicted and a large one is there, though single steps of the two arms overlap: going back to the
// slow setting would cost more than it could still teach.
bool Trial::clearly_faster() {
  const Proposal& proposal = setup_.proposal;
  if (setup_.in_force || setup_.by_hand || proposal.saving) return false;
  if ((proposal.gain_low + proposal.gain_high) / 2 < policy_.fast_gain) return false;
  const std::optional<Comparison> comparison = compare(blocks_, setup_.seed);
  if (!comparison || comparison->speedup.low < 1 + policy_.fast_gain / 2) return false;
  take_figures(*comparison);
  return true;
}

void Trial::judge() {
  const std::optional<Comparison> comparison = compare(blocks_, setup_.seed);
  if (!comparison) return give_up(Outcome::inconclusive, "nothing to compare");
  take_figures(*comparison);
  const Decision decision = decide(*comparison, policy_, setup_.proposal.saving);
  // A kept change under a second look only goes where it is shown to gain nothing.
  if (setup_.in_force && decision == Decision::extend && extends_ >= policy_.max_extends) {
    return conclude(Outcome::kept, "still no slower than without it", true);
  }
  if (decision == Decision::keep) return conclude(Outcome::kept, "faster", true);
  if (decision == Decision::undo) return conclude(Outcome::undone, "no gain", false);
  if (extends_ >= policy_.max_extends) {
    return conclude(Outcome::inconclusive, "no clear difference", false);
  }
  ++extends_;
  blocks_wanted_ += more_blocks_;
  flip_to(!in_force_);
}

void Trial::take_figures(const Comparison& comparison) {
  result_.speedup = comparison.speedup;
  const auto measured = [&](double seconds, const Cores& cores) {
    Measured side;
    side.step_seconds = seconds * work_;
    if (!counts_samples_) return side;
    side.samples_per_second = 1 / seconds;
    if (cores.looks > 0) side.cpu_seconds_per_sample = cores.sum / cores.looks * seconds;
    return side;
  };
  result_.before_work_seconds = comparison.before_seconds;
  result_.before = measured(comparison.before_seconds, cores_before_);
  result_.after = measured(comparison.after_seconds, cores_after_);
}

void Trial::count_regret(const StepSample& sample) {
  if (!in_force_ || blocks_.empty() || blocks_.front().after || !sample.countable) return;
  const double before = *median(blocks_.front().values) * sample.work;
  if (sample.seconds > kCostlyStep * before) live_regret_ += sample.seconds - before;
  result_.regret_seconds = live_regret_;
}

void Trial::observe_cores(double cores) {
  if (stage_ != Stage::measuring || held_steps_ > 0) return;
  Cores& side = in_force_ ? cores_after_ : cores_before_;
  side.sum += cores;
  ++side.looks;
}

// A whole epoch with the change, its turn included, against plain steps without it: if that is faster, so is the
// change, and nobody has to go back to the slow setting to learn it.
void Trial::verify_by_epoch() {
  const double before = *median(blocks_.front().values);
  if (before < (1 + policy_.keep_gain) * epochs_.values().front()) return restart_by_epochs();
  const std::vector<Block> both{blocks_.front(), Block{in_force_, arm_.values()}};
  if (const std::optional<Comparison> comparison = compare(both, setup_.seed)) {
    take_figures(*comparison);
  }
  verifying_ = result_.provisional = false;
  conclude(Outcome::kept, "verified over a whole epoch", true);
}

void Trial::restart_by_epochs() {
  setup_.epoch_mode = true;
  first_blocks_ = 5;
  more_blocks_ = 4;
  blocks_wanted_ = first_blocks_;
  extends_ = 0;
  verifying_ = fast_tried_ = false;
  result_.provisional = false;
  blocks_.clear();
  epochs_.clear_values();
  if (in_force_ != setup_.in_force) flip_to(setup_.in_force);
}

std::optional<CommandKind> Trial::wanted() const {
  if (stage_ == Stage::done || sent_at_) return std::nullopt;
  const bool flipping = stage_ == Stage::flipping && !waiting_since_;
  const bool concluding = stage_ == Stage::concluding && in_force_ != end_in_force_;
  if (!flipping && !concluding) return std::nullopt;
  const bool to = concluding ? end_in_force_ : target_;
  return to ? CommandKind::apply : CommandKind::revert;
}

void Trial::sent(int64_t now_ns) {
  if (stage_ == Stage::concluding) target_ = end_in_force_;
  sent_at_ = now_ns;
  waited_steps_ = 0;
}

void Trial::flip_to(bool in_force) {
  stage_ = Stage::flipping;
  target_ = in_force;
  waiting_since_.reset();
}

void Trial::applied() {
  if (!sent_at_) return;
  in_force_ = target_;
  ++flips_;
  waiting_since_ = sent_at_;
  sent_at_.reset();
  if (stage_ == Stage::concluding) finish();
}

void Trial::effective(int64_t step_index) {
  if (sent_at_) applied();
  if (stage_ != Stage::flipping || !waiting_since_) return;
  waiting_since_.reset();
  effective_step_ = step_index;
  settle_steps_ = setup_.proposal.cheap_flip && flips_ > 1
                      ? setup_.proposal.settle_steps
                      : std::max(policy_.min_settle_steps, setup_.proposal.settle_steps);
  stage_ = Stage::settling;
}

void Trial::failed(const std::string& reason) {
  if (!sent_at_ && !waiting_since_) return;
  const bool wanted_to_undo = !target_;
  const bool answered = !sent_at_;  // applied() came first: it is in force and broke afterwards
  sent_at_.reset();
  waiting_since_.reset();
  if (wanted_to_undo && ++undo_attempts_ >= kUndoAttempts) {
    result_.undo_failed = true;
    result_.outcome = Outcome::failed;
    result_.conclusion = "could not be taken back: " + reason;
    stage_ = Stage::done;
    return;
  }
  if (stage_ == Stage::concluding) {
    if (!wanted_to_undo) {
      result_.outcome = Outcome::failed;
      result_.conclusion = reason;
      end_in_force_ = false;
    }
    return finish();
  }
  if (wanted_to_undo && !answered) return;  // flipping: ask again
  conclude(Outcome::failed, reason, false);
}

void Trial::check_deadline(int64_t now_ns) {
  const std::optional<int64_t> since = sent_at_ ? sent_at_ : waiting_since_;
  if (!since || now_ns - *since < policy_.deadline_ns) return;
  if (waited_steps_ < policy_.deadline_steps && setup_.step_seconds > 1) return;
  if (stage_ != Stage::flipping || setup_.proposal.at_epoch_turn) return;
  // An unanswered command may still take effect: concluding waits for the answer before it asks for
  // more.
  if (target_) return conclude(Outcome::failed, "did not take effect in time", false);
  conclude(Outcome::inconclusive, "the way back did not take effect in time", false);
}

void Trial::give_up(Outcome outcome, const std::string& reason, bool undo) {
  if (stage_ == Stage::done) return;
  conclude(outcome, reason, undo ? false : setup_.in_force);
}

void Trial::conclude(Outcome outcome, const std::string& reason, bool end_in_force) {
  result_.outcome = outcome;
  result_.conclusion = reason;
  end_in_force_ = end_in_force;
  waiting_since_.reset();
  stage_ = Stage::concluding;
  finish();
}

void Trial::finish() {
  if (sent_at_ || in_force_ != end_in_force_) return;  // one more flip, or its answer, first
  waiting_since_.reset();
  stage_ = Stage::done;
  if (result_.before.step_seconds && result_.after.step_seconds) {
    const double lost = *result_.after.step_seconds - *result_.before.step_seconds;
    result_.regret_seconds =
        std::max(result_.regret_seconds, lost > 0 ? lost * steps_after_ : -lost * steps_back_);
  }
}

}  // namespace gpuutil
