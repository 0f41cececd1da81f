// Every trial: what, why, when, before, after, how it ended, how to undo it, how to make it
// permanent (DESIGN 10). Written by the controller only; reports read copies. Bounded: rows of
// changes in force always stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bootstrap.h"
#include "tune/change.h"

namespace gpuutil {

enum class Outcome : uint8_t { running, kept, undone, inconclusive, failed, refused, reverted };

constexpr std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view names[] = {"running", "kept",    "undone",  "inconclusive",
                                        "failed",  "refused", "reverted"};
  return names[static_cast<size_t>(outcome)];
}

struct Measured {
  std::optional<double> step_seconds;
  std::optional<double> samples_per_second;
  std::optional<double> cpu_seconds_per_sample;  // this process and its workers
};

struct LedgerRow {
  int64_t id = 0;
  std::vector<Change> changes;
  std::string finding;
  Exactness exactness = Exactness::exact;
  std::string exactness_reason;
  std::string reason;      // why it was tried
  std::string conclusion;  // why it ended so
  int64_t step = 0;        // at which it was first applied; where refused, at which it was refused
  Measured before;
  Measured after;
  std::optional<Interval> speedup;
  Outcome outcome = Outcome::running;
  bool provisional = false;  // kept by the fast path, not yet verified
  bool in_force = false;     // the changes are applied now
  bool protective = false;   // made without a trial, to guard the run: it has no speed-up
  std::string undo;    // how the user takes it back: "mon.revert(3)"; empty where not in force
  std::string recipe;  // the code that makes it permanent

  // "loader_workers + main_threads"
  std::string remedy() const;
};

// The code that makes these changes permanent, one statement a line.
std::string recipe(const std::vector<Change>& changes);

// "workers 0 -> 2, main threads 2 -> 1"
std::string describe(const std::vector<Change>& changes);

class Ledger {
 public:
  explicit Ledger(size_t capacity = 256) : capacity_(capacity) {}

  // Takes the row's place in history; gives its id, from 1.
  int64_t add(LedgerRow row);
  LedgerRow* find(int64_t id);
  const LedgerRow* find(int64_t id) const;
  const std::vector<LedgerRow>& rows() const { return rows_; }
  int64_t dropped() const { return dropped_; }

  // Rows in force that touch a setting which row `id` touches, directly or through each other, from
  // the newest to `id` itself: the order in which they must be undone.
  std::vector<int64_t> undo_order(int64_t id) const;

  // What all changes in force amount to, one entry a setting: its value before any of them and its
  // value now.
  std::vector<Change> in_force() const;

 private:
  size_t capacity_;
  int64_t next_id_ = 1;
  int64_t dropped_ = 0;
  std::vector<LedgerRow> rows_;
};

}  // namespace gpuutil
