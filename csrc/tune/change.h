// What the controller asks the hands to do. A change names a remedy, what it is applied to and the
// two values; changes that only make sense together travel, succeed and are undone as one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/exactness.h"

namespace gpuutil {

struct Change {
  std::string remedy;     // "loader_workers", "loader_prefetch", "main_threads"
  uint32_t subject = 0;   // loader id; 0 for the process
  int64_t from = 0;
  int64_t to = 0;

  bool operator==(const Change&) const = default;
};

struct Proposal {
  std::vector<Change> changes;
  std::string finding;          // the finding that it answers
  std::string reason;           // for the ledger, one line with numbers
  Exactness exactness = Exactness::exact;
  std::string exactness_reason; // why this class in this run; empty where it is the usual one
  double gain_low = 0;          // predicted share of the step saved
  double gain_high = 0;
  double confidence = 0;        // 0..1
  double risk = 1;              // >= 1; divides the rank
  bool cheap_flip = false;      // may be switched every few steps: interleave A/B/A/B
  int32_t settle_steps = 5;     // steps in flight that predate the change
  // With N workers batches come in bursts of N: only means over so many steps compare, without and
  // with it.
  int32_t burst_from = 1;
  int32_t burst_to = 1;
  bool at_epoch_turn = false;   // begins with the next pass over the loader: whole epochs are compared
  bool by_hand = false;         // never unasked
  bool saving = false;          // wanted for what it saves: kept where it loses nothing
  bool protective = false;      // guards the run: no trial can show a gain, so it is made without one
};

enum class CommandKind : uint8_t { apply, revert };

// To the hands, at the next step boundary. They answer with applied(), effective() or failed().
struct Command {
  int64_t id = 0;
  CommandKind kind = CommandKind::apply;
  int64_t ledger_id = 0;
  std::vector<Change> changes;  // for revert: the same ones, to be taken from `to` back to `from`
  std::string reason;
};

}  // namespace gpuutil
