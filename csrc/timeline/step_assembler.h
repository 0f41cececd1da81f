// Folds the events of all threads into steps and epochs (DESIGN 4, 5). Steps follow each other
// without a gap; their phases sum to their wall time to the nanosecond. Engine thread only; no
// clock of its own.
//
// Use: push() whatever a drain of the recorders yields, then drained() with the time at which that
// drain began; flush() when nothing more will come. Sinks are called from drained() and flush(), in
// order of time, an epoch's turn after the steps that ended in it. In a loop whose cycle is known a
// step is handed on as soon as its end was drained; at the start, after 3 optimizer ends (64
// fetches where there is no optimizer). What is held meanwhile is bounded: kMaxDetail operator
// events, BoundaryFinder::kMaxHeld others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "timeline/boundary_finder.h"
#include "timeline/epoch_turn.h"
#include "timeline/event_sorter.h"
#include "timeline/interval_set.h"
#include "timeline/phase_painter.h"
#include "timeline/running_usual.h"
#include "timeline/step.h"
#include "timeline/thread_roles.h"

namespace gpuutil {

class StepAssembler {
 public:
  using StepSink = std::function<void(const Step&)>;
  using EpochSink = std::function<void(const EpochTurn&)>;

  static constexpr size_t kMaxDetail = 1u << 17;
  static constexpr int64_t kFirstSteps = 3;
  static constexpr int64_t kOutlierFactor = 5;
  static constexpr int64_t kTurnPatienceNs = 500'000'000;  // and not under two usual steps

  // Time begins at `start_ns` (attach); without one, at the first event.
  StepAssembler(StepSink on_step, EpochSink on_epoch,
                std::optional<int64_t> start_ns = std::nullopt);

  // Events of one thread in order; threads in any order. Complete kinds are stamped with their end.
  void push(uint32_t thread, const Event& event);
  // Every event up to this time was pushed: the time at which the drain began.
  void drained(int64_t complete_until_ns);
  // Every step that overlaps [begin_ns, end_ns], and the one under way if these are over, gets
  // these marks: kStepChanged by the controller; kStepDropped for the time between two drains where
  // a recorder lost events.
  void mark(int64_t begin_ns, int64_t end_ns, uint32_t marks);
  void mark(int64_t time_ns, uint32_t marks) { mark(time_ns, time_ns, marks); }
  // Decides with what there is and ends the last epoch (EpochEnd::end) at `now_ns`. The step under
  // way is not a step; its time is that epoch's tail. Pushing may go on: time continues from here.
  void flush(int64_t now_ns);

  Cycle cycle() const { return finder_.cycle(); }
  std::optional<uint32_t> training_thread() const { return roles_.training(); }
  int64_t epoch() const { return epoch_.epoch; }  // number of the one under way

 private:
  struct Mark {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint32_t marks = 0;
  };

  void process(const ThreadEvent& event);
  void feed(const ThreadEvent& event, uint64_t sequence);
  void find_backward_end(const ThreadEvent& event, uint64_t sequence);
  void apply_decisions();
  void take_piece(int64_t end_ns, uint64_t sequence);
  void end_step(const Boundary& decision);
  void end_epoch(const Boundary& decision);
  void replay();
  void limit_memory();

  StepSink on_step_;
  EpochSink on_epoch_;
  EventSorter sorter_;
  ThreadRoles roles_;
  BoundaryFinder finder_;
  PhasePainter painter_;

  std::vector<ThreadEvent> sorted_;  // of the drain under way
  std::vector<ThreadEvent>
      held_;  // since the last boundary; held_[head_] has the number first_sequence_
  size_t head_ = 0;
  uint64_t first_sequence_ = 0;
  size_t detail_ = 0;  // operator events among them
  bool detail_lost_ = false;
  IntervalSet evaluation_;
  std::vector<Mark> marks_;

  bool started_ = false;
  int64_t painted_until_ns_ = 0;
  Piece step_;  // painted so far of the step under way
  PhaseTimes step_earlier_fine_, step_earlier_coarse_;
  Piece tail_;  // painted since the last step or epoch end
  uint32_t step_marks_ = 0;
  std::optional<int64_t> backward_end_ns_;
  uint64_t backward_end_sequence_ = 0;

  int64_t next_index_ = 0;
  EpochTurn epoch_;  // under way
  bool epoch_samples_known_ = true;
  RunningUsual usual_wall_, usual_samples_;
};

}  // namespace gpuutil
