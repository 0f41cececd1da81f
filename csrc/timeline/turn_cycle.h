// What one step of this loop consists of: which optimizer's end closes it, how many of these, and
// how many batches are fetched in it. Learnt from the order of optimizer ends and fetches; robust
// majorities, so that a step that GradScaler skips or a short last accumulation does not move it.
// Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gpuutil {

struct Cycle {
  uint32_t end_optimizer = 0;   // its end closes the step
  uint32_t ends_per_step = 1;   // consecutive ends of it in one step
  uint32_t optimizer_ends = 1;  // of all optimizers in one step
  uint32_t fetches = 0;         // batches in one step; 0: none, or no majority
  bool learnt = false;

  // Optimizer ends that an observation must last to contain a whole step wherever it begins.
  uint32_t observation_span() const { return optimizer_ends <= 1 ? 1 : 2 * optimizer_ends; }
};

class TurnCycle {
 public:
  static constexpr size_t kLongestTurn =
      16;  // optimizer ends; a rarer optimizer does not make the cycle
  static constexpr size_t kManyOptimizers = 8;  // more than this in one turn: optimizer-in-backward

  // In order of time, on the training thread.
  void see_fetch(uint32_t loader);
  void see_optimizer(uint32_t id);
  // A step ended by itself: the batches and optimizer ends since the last one that did, and who
  // delivered the batches.
  void see_turn(uint32_t fetches, uint32_t optimizer_ends, const std::vector<uint32_t>& loaders);

  // Whether what was seen says how a step ends. Falls back to `no` when an unknown optimizer
  // appears.
  bool settled() const { return settled_; }
  bool many_optimizers() const { return many_; }
  // Decides with what there is (the look-ahead is used up, or nothing more will come).
  void settle();

  const Cycle& cycle() const { return cycle_; }
  bool ignored(uint32_t id) const;
  // Feeds most turns. Empty answer: not learnt yet.
  std::optional<bool> feeds(uint32_t loader) const;
  // The loop is no longer the one that was learnt.
  void relearn();

 private:
  struct End {
    uint32_t id = 0;
    uint32_t fetches = 0;  // since the end before
    std::vector<uint32_t> loaders;
  };
  struct Turn {
    uint32_t fetches = 0;
    uint32_t optimizer_ends = 0;
    std::vector<uint32_t> loaders;
  };

  size_t count(uint32_t id) const;
  bool enough() const;
  void choose_end(bool closed);
  void learn_counts();

  std::deque<End> ends_;    // the last kHistory
  std::deque<Turn> turns_;  // the last kTurns
  std::vector<uint32_t> known_, ignored_;
  Cycle cycle_;
  End next_;  // what was fetched since the last optimizer end
  size_t ends_since_unsettled_ = 0;
  std::optional<uint32_t> newcomer_;
  bool fetched_ = false;
  bool settled_ = false;
  bool many_ = false;
};

}  // namespace gpuutil
