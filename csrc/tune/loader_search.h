// Which setting of a loader to try next: first the model's best, in one jump, then a hill climb
// around what was kept, up and down (DESIGN 8). Remembers what was tried. One for each loader; used
// by the controller.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tune/ledger.h"
#include "tune/loader_model.h"

namespace gpuutil {

// A number of main threads that a rule advises, with the finding's own prediction.
struct ThreadWish {
  int threads = 0;
  double gain_low = 0;
  double gain_high = 0;
  double confidence = 0;
  std::string reason;
};

// What the policy lets it move.
struct LoaderFreedom {
  bool workers = true;
  bool threads = true;
  std::optional<ThreadWish> thread_wish = std::nullopt;
};

// With N workers every Nth step waits and the others do not: steps are compared in runs of so many.
inline int burst_steps(int workers) { return std::clamp(workers, 1, 32); }

class LoaderSearch {
 public:
  // `most_threads`: what the user's run has; never more is proposed, unless a rule advises it.
  explicit LoaderSearch(int most_threads) : most_threads_(most_threads) {}

  // Settings worth trying now, unordered. Empty where nothing promises policy.min_gain. `findings`
  // are the ids that the rules gave; a proposal names the one that it answers.
  std::vector<Proposal> propose(const Features& features, const LoaderModel& model,
                                const LoaderFreedom& freedom, const Policy& policy,
                                const std::vector<std::string>& findings) const;

  // A trial that led from `now` came to an end. Neither its target nor, where it was kept, the
  // setting that it left is tried again.
  void concluded(const LoaderSetting& now, const Proposal& proposal, Outcome outcome);

  // Time went by: what ended without a verdict may be tried again.
  void forget_undecided();

  // The world changed: what failed before may be worth trying again.
  void forget();
  bool has_tried() const { return !tried_.empty(); }

  // The setting that a proposal leads to from `now`.
  static LoaderSetting target(const LoaderSetting& now, const Proposal& proposal);

 private:
  enum Direction { kWorkersUp, kWorkersDown, kThreadsUp, kThreadsDown, kPrefetchUp, kPrefetchDown };
  static constexpr size_t kDirections = 6;

  struct Move {
    LoaderSetting setting;
    double gain_low = 0;
    double gain_high = 0;
    double confidence = 0;
    bool saving = false;
    bool advised = false;  // by the rule main_threads
    std::string reason;
  };

  std::optional<Move> jump(const LoaderModel& model, int most_workers,
                           const LoaderFreedom& freedom, const Policy& policy) const;
  std::vector<Move> neighbours(const LoaderModel& model, int most_workers,
                               const LoaderFreedom& freedom, const Policy& policy,
                               const LoaderFacts& loader) const;
  bool open(const LoaderSetting& from, const LoaderSetting& to, const Policy& policy) const;
  bool tried(const LoaderSetting& setting) const;
  static std::optional<Move> advised(const LoaderModel& model, const LoaderFreedom& freedom);
  static std::optional<Direction> direction(const LoaderSetting& from, const LoaderSetting& to);

  int most_threads_;
  struct Tried {
    LoaderSetting setting;
    bool undecided = false;
  };
  std::vector<Tried> tried_;
  std::array<int, kDirections> failures_{};
};

// The changes that lead from one setting to another, and how far they may move the result of
// training.
Proposal loader_proposal(const Features& features, const LoaderSetting& from,
                         const LoaderSetting& to);

}  // namespace gpuutil
