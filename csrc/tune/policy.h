// The numbers and the ladder that tuning obeys (DESIGN 7, 8). A plain value: whoever makes a
// controller may change any of it, tests do. Nothing here acts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tune/change.h"

namespace gpuutil {

// attach(apply=...): how far a change may move the result of training and still be made unasked.
enum class Rung : uint8_t { observe, exact, automatic, precision, all };

constexpr std::string_view rung_name(Rung rung) {
  constexpr std::string_view names[] = {"observe", "exact", "auto", "precision", "all"};
  return names[static_cast<size_t>(rung)];
}

constexpr std::optional<Rung> rung_from_name(std::string_view name) {
  for (const Rung rung :
       {Rung::observe, Rung::exact, Rung::automatic, Rung::precision, Rung::all}) {
    if (rung_name(rung) == name) return rung;
  }
  return std::nullopt;
}

struct Policy {
  Rung rung = Rung::automatic;

  // Verdicts, on the interval of the speed-up less 1.
  double keep_gain = 0.02;  // keep where the low end is above
  double undo_gain = 0.01;  // undo where the high end is below
  double saving_loss =
      0.01;  // a change that saves resources is kept where the low end is above minus this
  int max_extends = 3;

  // Fast path: a large predicted gain and arms that do not overlap.
  double fast_gain = 0.30;
  int fast_steps = 8;

  // What a trial needs.
  double min_gain = 0.02;  // share of the step; nothing predicted below it is tried
  int baseline_steps = 12;
  int min_settle_steps = 5;
  int watch_steps = 200;
  int epoch_mode_steps = 30;             // epochs with fewer steps are compared as wholes
  int64_t deadline_ns = 60'000'000'000;  // for the hands to answer and for a change to take effect
  int deadline_steps = 20;               // ... and not before as many steps of the usual length
  int max_held_steps = 200;              // a trial that cannot measure for so many steps ...
  double max_held_seconds = 15;          // ... and so long is given up

  // When trials wait.
  double hold_cores = 0.2;  // foreign CPU in our budget, or a move of it
  double regret_ratio = 0.01;
  double regret_credit_seconds = 10;
  double quiet_tail_ratio = 0.05;  // of a run of known length: no trial in it
  double rearm_factor = 1.4;
  int64_t backoff_ns = 60'000'000'000;  // after a search without result; doubles each time
  int64_t max_backoff_ns = 3'600'000'000'000;

  // Loader search.
  int max_workers = 32;
  int first_workers = 24;  // the most that a first jump asks for beyond twice the cores; later ones double
  int max_prefetch = 16;
  double worker_bytes = 200e6;  // what one more worker is taken to need
  double memory_share = 0.5;    // of the available memory, for workers
  int failed_refinements = 2;   // in one direction, then it is closed

  bool allows(Exactness exactness) const {
    switch (rung) {
      case Rung::observe:
        return false;
      case Rung::exact:
        return exactness == Exactness::exact;
      case Rung::automatic:
        return exactness <= Exactness::distribution;
      case Rung::precision:
        return exactness <= Exactness::precision;
      case Rung::all:
        return true;
    }
    return false;
  }
};

}  // namespace gpuutil
