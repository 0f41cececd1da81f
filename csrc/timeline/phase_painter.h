// Says what the training thread was doing at each instant of a stretch of time (DESIGN 5): every
// nanosecond goes to the first of these that covers it: explicit spans (the innermost), evaluation,
// input_wait, sync_wait, host_to_device, backward, optimizer, forward, other. What is open at the
// end of a stretch goes on in the next one. "Complete" events are stamped with their end. Engine
// thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "record/phase.h"
#include "timeline/event_sorter.h"
#include "timeline/interval_set.h"
#include "timeline/thread_roles.h"

namespace gpuutil {

struct Piece {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  PhaseTimes fine;          // as told apart by the operator observer
  PhaseTimes coarse;        // what is known without it: the rest is `other`
  int64_t observed_ns = 0;  // how long the operator observer was in place
  int64_t fetch_cpu_ns = 0;
  int64_t operator_ns = 0;
  int64_t python_gap_ns = 0;
  int64_t user_python_ns = 0;
  uint32_t events = 0;

  Piece& operator+=(const Piece& next);  // `next` begins where this one ends
};

class PhasePainter {
 public:
  // `events` are those of [begin_ns, end_ns], in order. `lossy`: some were lost, so nothing stays
  // open after it.
  Piece paint(int64_t begin_ns, int64_t end_ns, std::span<const ThreadEvent> events,
              const IntervalSet& evaluation, const ThreadRoles& roles, bool lossy);
  void reset();

 private:
  struct Open {
    uint32_t subject = 0;
    int64_t begin_ns = 0;
  };

  void scan(std::span<const ThreadEvent> events, const ThreadRoles& roles);
  void scan_fetch_end(const Event& event);
  void scan_span(const Event& event, Piece& piece);
  void add_span(int64_t until_ns, Piece& piece);
  void find_backward();
  void find_forward();
  void add_forward(int64_t from_ns, int64_t until_ns, bool until_backward);
  void measure(Piece& piece, const IntervalSet& evaluation);

  // Carried from one stretch to the next.
  std::vector<Open> fetches_, optimizers_;
  std::vector<Phase> spans_;
  int64_t span_from_ns_ = 0, iterator_from_ns_ = 0, sampled_from_ns_ = 0;
  bool in_iterator_ = false, sampling_ = false;

  // Of the stretch; members only to keep their memory.
  IntervalSet explicit_, input_, sync_, copy_, nodes_, backward_, optimizer_, zero_grad_, forward_,
      ops_;
  std::vector<TimeSpan> optimizer_calls_, op_list_;
  std::vector<int64_t>
      anchors_;  // forward begins after one of these: ends of fetches and optimizers
  std::vector<int64_t> breaks_;  // what begins here is not backward
  std::vector<int64_t> fetch_ends_;
};

}  // namespace gpuutil
