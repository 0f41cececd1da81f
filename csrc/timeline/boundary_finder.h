// Where steps and epochs end, and what was an evaluation loop: the training thread's structural
// events in, decisions out, in order of time. Some decisions need what comes after (an evaluation,
// a skipped step, an early break, a loop whose cycle is not known yet), so events wait here: until
// the next optimizer end or fetch in a known loop, until 3 optimizer ends, or 64 fetches without
// one, in an unknown one; never more than kMaxHeld. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "record/event.h"
#include "timeline/epoch_turn.h"
#include "timeline/loader_pass.h"
#include "timeline/turn_cycle.h"

namespace gpuutil {

enum class TokenKind : uint8_t {
  iter_begin,
  fetch_begin,
  fetch_end,
  optimizer_end,
  user_step,
  user_epoch,
  backward_end,
};

struct Token {
  int64_t time_ns = 0;
  uint64_t sequence = 0;  // position among all events
  int64_t value = 0;
  uint32_t subject = 0;
  uint16_t flags = 0;
  TokenKind kind = TokenKind::iter_begin;
  bool remote =
      false;  // of a loader on another thread: no wait and no step, but its passes are epochs
};

enum class DecisionKind : uint8_t { step_end, epoch_turn, evaluation };

// Steps and turns own every event with a sequence below theirs that no earlier one owns.
struct Boundary {
  DecisionKind kind = DecisionKind::step_end;
  int64_t time_ns = 0;
  int64_t end_ns = 0;  // of an evaluation
  uint64_t sequence = 0;

  // Of a step.
  uint32_t fetches = 0;
  uint32_t optimizer_ends = 0;
  uint32_t loader = 0;
  int64_t samples = 0;   // 0 where unknown
  bool turn = false;     // the training loader ended or began a pass in it
  bool partial = false;  // fewer batches than the cycle has

  // Of a turn.
  EpochEnd end = EpochEnd::exhausted;
  std::optional<int64_t> user_number;
};

class BoundaryFinder {
 public:
  static constexpr size_t kMaxHeld = 8192;
  static constexpr uint32_t kFetchesWithoutOptimizer = 64;

  void feed(const Token& token);
  // No event for a while (`now_ns` is the time up to which all are known): what waits for the event
  // after the end of a pass waits no longer.
  void idle(int64_t now_ns, int64_t patience_ns);
  // Nothing more will come: decides with what there is.
  void flush();
  // Keeps what the user said (mon.step(), mon.epoch()) and forgets the rest; for another training
  // thread.
  void restart();

  std::vector<Boundary>& decisions() { return decisions_; }  // the caller takes them out
  Cycle cycle() const;
  bool has_optimizer() const { return optimizers_seen_; }
  // More is held than a plain loop needs: the caller may fold everything up to now.
  bool overfull() const { return held_.size() + fetches_.size() + ends_.size() > kMaxHeld; }
  // What lasts too long to be held is taken for what it looks like now.
  void give_in(int64_t now_ns);

 private:
  enum class Mode : uint8_t { unknown, optimizer, fetch, backward, user };

  struct Fetch {
    int64_t begin_ns = 0, end_ns = 0;
    uint64_t sequence = 0;  // of its begin
    int64_t samples = 0;
    uint32_t loader = 0;
  };
  struct Ended {  // the end of a training pass that waits for the event after it
    Token token;
    int64_t begin_ns = 0;
    uint64_t begin_sequence = 0;
  };

  void learn(const Token& token);
  void settle();
  void run(const Token& token);
  void on_iter_begin(const Token& token);
  void on_fetch_begin(const Token& token);
  void on_fetch_end(const Token& token);
  void on_exhausted(const Token& token, int64_t begin_ns, uint64_t begin_sequence);
  void on_optimizer_end(const Token& token);
  void on_user_step(const Token& token);
  void on_remote(const Token& token);

  void resolve_ended(bool step_goes_on);
  void attribute(const Token& token);
  std::optional<int64_t> evaluated_until(const LoaderPass& pass);
  void close_skipped(int64_t now_ns);
  void prove(LoaderPass& pass);
  LoaderPass& pass_of(const Token& token);
  uint32_t training_fetches() const;
  uint32_t fetches_of(uint32_t loader) const;
  void drop_fetches(uint32_t loader, uint64_t from_sequence);
  void finish_turn();
  void decide_evaluation(LoaderPass& pass, int64_t end_ns);
  void cut(int64_t time_ns, uint64_t sequence);
  void turn(int64_t time_ns, uint64_t sequence, uint32_t loader, EpochEnd end);
  void put(Boundary decision);

  TurnCycle turns_;
  Mode mode_ = Mode::unknown;
  bool user_steps_ = false, user_epochs_ = false, optimizers_seen_ = false;
  std::deque<Token> held_;  // while the loop is unknown
  uint32_t held_fetches_ = 0, held_backwards_ = 0;

  PassBook passes_, remote_passes_;
  std::vector<Fetch> fetches_;        // since the last boundary, evaluation excluded
  std::vector<Token> ends_;           // optimizer ends since the last boundary
  std::vector<uint64_t> turn_marks_;  // sequences at which training passes ended or began
  std::optional<Token> open_fetch_;
  std::optional<Ended> ended_;
  std::optional<Token> last_end_;  // of the closing optimizer
  uint32_t run_ = 0;               // its consecutive ends
  uint64_t pass_sequence_ = 0;     // where the last epoch turn was
  uint32_t natural_fetches_ = 0;   // since a step last ended by itself
  uint32_t natural_ends_ = 0;
  std::vector<uint32_t> natural_loaders_;
  std::optional<uint32_t> primary_;  // the loader whose passes are epochs
  int64_t last_ns_ = INT64_MIN;      // of the last decision
  uint64_t last_sequence_ = 0;
  std::vector<Boundary> decisions_;
};

}  // namespace gpuutil
