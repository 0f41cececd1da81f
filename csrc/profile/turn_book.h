// Follows the passes over one loader by its events and tells what its turns cost. The first pass has no turn before
// it: what a process does for the first time is not counted. Plain value type; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "profile/turn_cost.h"
#include "record/event.h"

namespace gpuutil {

class TurnBook {
 public:
  static constexpr size_t kKept = 8;

  // Events of this loader, in order; other kinds are passed over.
  void observe(const Event& event);
  // Empty before the first turn.
  std::optional<TurnCost> cost() const;

 private:
  struct Turn {
    int64_t epoch_ns = 0;  // of the pass before it
    int64_t end_ns = 0;
    int64_t iter_ns = 0;
    int64_t first_ns = 0;
    int64_t usual_ns = 0;
  };

  void begin_pass(int64_t time_ns);
  void end_fetch(const Event& event);

  std::deque<Turn> turns_;
  Turn next_;                // the turn under way
  bool turning_ = false;     // ... if there is one: a pass was seen from its begin before it
  bool passing_ = false;     // a pass is under way whose begin was seen
  int64_t pass_begin_ns_ = 0;
  int64_t iter_begin_ns_ = 0;
  int64_t fetch_begin_ns_ = 0;
  int64_t exhausted_ns_ = 0;  // how long the fetch took that ended the pass; 0 where it was left early
  int64_t later_ns_ = 0;      // of all fetches but the first
  int64_t batches_ = 0;
};

}  // namespace gpuutil
