#include "timeline/step_assembler.h"

#include <algorithm>
#include <utility>

namespace gpuutil {
namespace {

// Switching the observer takes a moment at either end of a step that counts as observed all the
// same.
constexpr int64_t kUnobservedNs = 20'000;

bool observed(int64_t observed_ns, int64_t wall_ns) {
  return observed_ns > 0 && wall_ns - observed_ns <= std::max(kUnobservedNs, wall_ns / 50);
}

bool is_detail(EventKind kind) {
  return kind >= EventKind::fetch_cpu && kind != EventKind::optimizer_begin;
}

}  // namespace

StepAssembler::StepAssembler(StepSink on_step, EpochSink on_epoch, std::optional<int64_t> start_ns)
    : on_step_(std::move(on_step)), on_epoch_(std::move(on_epoch)) {
  if (!start_ns) return;
  started_ = true;
  painted_until_ns_ = *start_ns;
  step_.begin_ns = step_.end_ns = tail_.begin_ns = tail_.end_ns = *start_ns;
  epoch_.begin_ns = *start_ns;
}

void StepAssembler::push(uint32_t thread, const Event& event) {
  if (event.kind == EventKind::none || event.kind > EventKind::range) return;
  sorter_.push(thread, event);
  if (sorter_.size() > 4 * kMaxDetail) drained(event.time_ns);  // nobody calls drained()
}

void StepAssembler::drained(int64_t complete_until_ns) {
  sorted_.clear();
  sorter_.take(complete_until_ns, sorted_);
  for (const ThreadEvent& event : sorted_) process(event);
  const int64_t patience_ns = std::max(kTurnPatienceNs, 2 * usual_wall_.median().value_or(0));
  finder_.idle(complete_until_ns, patience_ns);
  apply_decisions();
}

void StepAssembler::flush(int64_t now_ns) {
  drained(INT64_MAX);
  now_ns = std::max(now_ns, painted_until_ns_);
  if (!held_.empty()) now_ns = std::max(now_ns, held_.back().event.time_ns);
  if (!started_) {
    started_ = true;
    painted_until_ns_ = now_ns;
    step_ = tail_ = Piece{now_ns, now_ns, {}, {}, 0, 0, 0, 0, 0, 0};
    epoch_.begin_ns = now_ns;
  }
  finder_.flush();
  apply_decisions();
  Boundary end;
  end.kind = DecisionKind::epoch_turn;
  end.end = EpochEnd::end;
  end.time_ns = now_ns;
  end.sequence = first_sequence_ + (held_.size() - head_);
  end_epoch(end);
  // What comes next begins a new step here; the tail was the old one's.
  step_ = Piece{now_ns, now_ns, {}, {}, 0, 0, 0, 0, 0, 0};
  step_earlier_fine_ = step_earlier_coarse_ = PhaseTimes{};
  painter_.reset();
}

void StepAssembler::mark(int64_t begin_ns, int64_t end_ns, uint32_t marks) {
  if (marks_.size() < BoundaryFinder::kMaxHeld) marks_.push_back({begin_ns, end_ns, marks});
}

void StepAssembler::process(const ThreadEvent& event) {
  if (!started_) {
    started_ = true;
    painted_until_ns_ = event.event.time_ns;
    step_.begin_ns = step_.end_ns = tail_.begin_ns = tail_.end_ns = painted_until_ns_;
    epoch_.begin_ns = painted_until_ns_;
  }
  if (is_detail(event.event.kind)) {
    if (detail_ >= kMaxDetail) {
      detail_lost_ = true;
      return;
    }
    ++detail_;
  }
  held_.push_back(event);
  Event& copy = held_.back().event;
  copy.time_ns = std::max(copy.time_ns, painted_until_ns_);
  const bool other_thread = roles_.see(event.thread, event.event.kind);
  if (other_thread) {
    replay();
  } else {
    const ThreadEvent lifted = held_.back();
    feed(lifted, first_sequence_ + (held_.size() - 1 - head_));
  }
  apply_decisions();
  limit_memory();
}

// Another thread turned out to be the one that trains: what is still held is looked at again.
void StepAssembler::replay() {
  finder_.restart();
  painter_.reset();
  backward_end_ns_.reset();
  const std::vector<ThreadEvent> again(held_.begin() + static_cast<std::ptrdiff_t>(head_),
                                       held_.end());
  uint64_t sequence = first_sequence_;
  for (const ThreadEvent& event : again) feed(event, sequence++);
}

void StepAssembler::feed(const ThreadEvent& event, uint64_t sequence) {
  find_backward_end(event, sequence);
  Token token;
  token.remote = !roles_.is_training(event.thread);
  token.time_ns = event.event.time_ns;
  token.sequence = sequence;
  token.value = event.event.value;
  token.subject = event.event.subject;
  token.flags = event.event.flags;
  switch (event.event.kind) {
    case EventKind::iter_begin:
      token.kind = TokenKind::iter_begin;
      break;
    case EventKind::fetch_begin:
      token.kind = TokenKind::fetch_begin;
      break;
    case EventKind::fetch_end:
      token.kind = TokenKind::fetch_end;
      break;
    case EventKind::optimizer_end:
      token.kind = TokenKind::optimizer_end;
      break;
    case EventKind::user_step:
      token.kind = TokenKind::user_step;
      break;
    case EventKind::user_epoch:
      token.kind = TokenKind::user_epoch;
      break;
    default:
      return;
  }
  const bool of_loader = token.kind == TokenKind::iter_begin || token.kind == TokenKind::fetch_end;
  if (!token.remote || of_loader) finder_.feed(token);
}

// A backward pass ended where the training thread calls an operator again. Only loops with neither
// a fetch nor an optimizer need it.
void StepAssembler::find_backward_end(const ThreadEvent& event, uint64_t sequence) {
  const bool training = roles_.is_training(event.thread);
  if (event.event.kind == EventKind::backward_node &&
      (training || roles_.is_autograd(event.thread))) {
    backward_end_ns_ = event.event.time_ns;
    backward_end_sequence_ = sequence;
  } else if (event.event.kind == EventKind::op && training && backward_end_ns_) {
    Token token;
    token.time_ns = *backward_end_ns_;
    token.sequence = backward_end_sequence_;
    token.kind = TokenKind::backward_end;
    backward_end_ns_.reset();
    finder_.feed(token);
  }
}

void StepAssembler::apply_decisions() {
  std::vector<Boundary>& decisions = finder_.decisions();
  if (decisions.empty()) return;
  for (const Boundary& decision : decisions) {
    switch (decision.kind) {
      case DecisionKind::evaluation:
        evaluation_.add(decision.time_ns, decision.end_ns);
        break;
      case DecisionKind::step_end:
        end_step(decision);
        break;
      case DecisionKind::epoch_turn:
        end_epoch(decision);
        break;
    }
  }
  decisions.clear();
}

// Paints from where the last piece ended and lets go of the events.
void StepAssembler::take_piece(int64_t end_ns, uint64_t sequence) {
  end_ns = std::max(end_ns, painted_until_ns_);
  const uint64_t held = held_.size() - head_;
  const uint64_t count =
      sequence <= first_sequence_ ? 0 : std::min(held, sequence - first_sequence_);
  const std::span<const ThreadEvent> events(held_.data() + head_, count);

  uint32_t marks = detail_lost_ ? kStepDropped : kStepClean;
  std::erase_if(marks_, [&](const Mark& mark) {
    if (mark.begin_ns > end_ns) return false;
    marks |= mark.marks;
    return mark.end_ns <= end_ns;
  });
  Piece piece = painter_.paint(painted_until_ns_, end_ns, events, evaluation_, roles_,
                               (marks & kStepDropped) != 0);
  if (detail_lost_) {
    piece.observed_ns = 0;
    piece.fine = piece.coarse;
  }
  step_marks_ |= marks;
  step_ += piece;
  tail_ += piece;
  painted_until_ns_ = end_ns;
  evaluation_.drop_before(end_ns);

  for (const ThreadEvent& event : events) detail_ -= is_detail(event.event.kind) ? 1 : 0;
  head_ += count;
  first_sequence_ += count;
  if (detail_ < kMaxDetail) detail_lost_ = false;
  if (head_ == held_.size()) {
    held_.clear();
    head_ = 0;
  } else if (head_ > held_.size() / 2) {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
}

void StepAssembler::end_step(const Boundary& decision) {
  take_piece(decision.time_ns, decision.sequence);
  Step step;
  step.index = next_index_++;
  step.epoch = epoch_.epoch;
  step.begin_ns = step_.begin_ns;
  step.end_ns = step_.end_ns;
  step.samples = decision.samples;
  step.micro_steps = decision.fetches;
  step.optimizer_ends = decision.optimizer_ends;
  step.loader = decision.loader;
  step.sampled = observed(step_.observed_ns, step.wall_ns());
  step.phases = step.sampled ? step_.fine : step_.coarse;
  step.earlier = step.sampled ? step_earlier_fine_ : step_earlier_coarse_;
  if (step.sampled) {
    step.fetch_cpu_ns = step_.fetch_cpu_ns;
    step.operator_ns = step_.operator_ns;
    step.python_gap_ns = step_.python_gap_ns;
    step.user_python_ns = step_.user_python_ns;
    step.events = step_.events;
  }

  const int64_t usual_samples = usual_samples_.median().value_or(0);
  step.marks = step_marks_;
  if (decision.turn) step.marks |= kStepEpochTurn;
  if (step.phases[Phase::evaluation] > 0) step.marks |= kStepEvaluation;
  if (step.phases[Phase::checkpoint] > 0) step.marks |= kStepCheckpoint;
  if (step.index < kFirstSteps) step.marks |= kStepFirst;
  if (decision.partial || (step.samples > 0 && step.samples < usual_samples)) {
    step.marks |= kStepPartialBatch;
  }
  const bool comparable = step.marks == kStepClean;
  const std::optional<int64_t> usual_wall = usual_wall_.median();
  if (usual_wall && usual_wall_.size() >= 5 && step.wall_ns() > kOutlierFactor * *usual_wall) {
    step.marks |= kStepOutlier;
  }
  if (comparable)
    usual_wall_.add(step.wall_ns());  // outliers too: a lasting change becomes the usual
  if (step.samples > 0) usual_samples_.add(step.samples);

  ++epoch_.steps;
  epoch_.samples += step.samples;
  epoch_samples_known_ = epoch_samples_known_ && step.samples > 0;
  step_ = tail_ = Piece{step.end_ns, step.end_ns, {}, {}, 0, 0, 0, 0, 0, 0};
  step_earlier_fine_ = step_earlier_coarse_ = PhaseTimes{};
  step_marks_ = kStepClean;
  on_step_(step);
}

void StepAssembler::end_epoch(const Boundary& decision) {
  take_piece(decision.time_ns, decision.sequence);
  epoch_.end_ns = painted_until_ns_;
  epoch_.loader = decision.loader;
  epoch_.kind = decision.end;
  epoch_.user_number = decision.user_number;
  epoch_.tail_sampled = observed(tail_.observed_ns, tail_.end_ns - tail_.begin_ns);
  epoch_.tail = epoch_.tail_sampled ? tail_.fine : tail_.coarse;
  if (!epoch_samples_known_) epoch_.samples = 0;
  step_earlier_fine_ = step_.fine;
  step_earlier_coarse_ = step_.coarse;

  const EpochTurn ended = epoch_;
  epoch_ = EpochTurn{};
  epoch_.epoch = ended.epoch + 1;
  epoch_.begin_ns = ended.end_ns;
  epoch_samples_known_ = true;
  tail_ = Piece{ended.end_ns, ended.end_ns, {}, {}, 0, 0, 0, 0, 0, 0};
  on_epoch_(ended);
}

// What lasts too long for look-ahead is painted as what it looks like now; the step goes on.
void StepAssembler::limit_memory() {
  const size_t held = held_.size() - head_;
  if (held < BoundaryFinder::kMaxHeld || held - detail_ < BoundaryFinder::kMaxHeld) {
    if (!finder_.overfull()) return;
  }
  finder_.give_in(held_.back().event.time_ns);
  apply_decisions();
  if (!held_.empty())
    take_piece(held_.back().event.time_ns, first_sequence_ + (held_.size() - head_));
}

}  // namespace gpuutil
