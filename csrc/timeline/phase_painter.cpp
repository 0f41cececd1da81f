#include "timeline/phase_painter.h"

#include <algorithm>

#include "timeline/step.h"

namespace gpuutil {
namespace {

constexpr size_t kMaxNesting = 16;

// Takes what `part` covers out of `free` and returns how much that was.
int64_t take(IntervalSet& free, const IntervalSet& part) {
  if (part.empty() || free.empty()) return 0;
  const int64_t before = free.total();
  free = subtract(free, part);
  return before - free.total();
}

}  // namespace

Piece& Piece::operator+=(const Piece& next) {
  end_ns = next.end_ns;
  fine += next.fine;
  coarse += next.coarse;
  observed_ns += next.observed_ns;
  fetch_cpu_ns += next.fetch_cpu_ns;
  operator_ns += next.operator_ns;
  python_gap_ns += next.python_gap_ns;
  user_python_ns += next.user_python_ns;
  events += next.events;
  return *this;
}

void PhasePainter::reset() {
  fetches_.clear();
  optimizers_.clear();
  spans_.clear();
  in_iterator_ = false;
}

void PhasePainter::add_span(int64_t until_ns, Piece& piece) {
  if (!spans_.empty()) {
    const int64_t from = std::max(span_from_ns_, piece.begin_ns);
    const int64_t to = std::min(until_ns, piece.end_ns);
    if (to > from) {
      piece.fine[spans_.back()] += to - from;
      explicit_.add(from, to);
    }
  }
  span_from_ns_ = until_ns;
}

void PhasePainter::scan_span(const Event& event, Piece& piece) {
  const auto phase = static_cast<Phase>(std::min<uint32_t>(event.subject, kPhaseCount - 1));
  if (event.kind == EventKind::span_begin) {
    if (spans_.size() >= kMaxNesting) return;
    add_span(event.time_ns, piece);
    spans_.push_back(phase);
    return;
  }
  // An end without its begin changes nothing; an end of an outer one ends those inside it too.
  auto open = std::find(spans_.rbegin(), spans_.rend(), phase);
  if (open == spans_.rend()) return;
  add_span(event.time_ns, piece);
  spans_.erase(std::prev(open.base()), spans_.end());
}

void PhasePainter::scan_fetch_end(const Event& event) {
  auto open = std::find_if(fetches_.rbegin(), fetches_.rend(),
                           [&](const Open& o) { return o.subject == event.subject; });
  if (open == fetches_.rend()) return;  // begun before we looked
  const int64_t begin_ns = open->begin_ns;
  fetches_.erase(std::prev(open.base()), fetches_.end());
  if (fetches_.empty()) {
    input_.add(begin_ns, event.time_ns);
    anchors_.push_back(event.time_ns);
    fetch_ends_.push_back(event.time_ns);
  }
}

Piece PhasePainter::paint(int64_t begin_ns, int64_t end_ns, std::span<const ThreadEvent> events,
                          const IntervalSet& evaluation, const ThreadRoles& roles, bool lossy) {
  Piece piece;
  piece.begin_ns = begin_ns;
  piece.end_ns = end_ns;
  for (IntervalSet* set : {&explicit_, &input_, &sync_, &copy_, &nodes_, &backward_, &optimizer_,
                           &zero_grad_, &forward_, &ops_}) {
    set->clear();
  }
  optimizer_calls_.clear();
  op_list_.clear();
  anchors_.assign(1, begin_ns);
  breaks_.clear();
  fetch_ends_.clear();

  for (const ThreadEvent& e : events) {
    const Event& event = e.event;
    const bool training = roles.is_training(e.thread);
    const int64_t complete_from_ns = event.time_ns - std::max<int64_t>(0, event.value);
    if (event.kind >= EventKind::fetch_cpu) ++piece.events;
    switch (event.kind) {
      case EventKind::sampling_begin:  // the observer is process-wide, whoever switched it
        if (!sampling_) sampled_from_ns_ = event.time_ns;
        sampling_ = true;
        continue;
      case EventKind::sampling_end:
        if (sampling_) piece.observed_ns += event.time_ns - std::max(sampled_from_ns_, begin_ns);
        sampling_ = false;
        continue;
      case EventKind::backward_node:
        if (training || roles.is_autograd(e.thread)) nodes_.add(complete_from_ns, event.time_ns);
        continue;
      default:
        break;
    }
    if (!training) continue;
    switch (event.kind) {
      case EventKind::iter_begin:
        if (!in_iterator_) iterator_from_ns_ = event.time_ns;
        in_iterator_ = true;
        break;
      case EventKind::iter_end:
        if (in_iterator_) input_.add(iterator_from_ns_, event.time_ns);
        in_iterator_ = false;
        break;
      case EventKind::fetch_begin: {
        auto same = std::find_if(fetches_.begin(), fetches_.end(),
                                 [&](const Open& o) { return o.subject == event.subject; });
        fetches_.erase(same, fetches_.end());  // its end was lost: how long it took is not known
        if (fetches_.empty()) breaks_.push_back(event.time_ns);
        if (fetches_.size() < kMaxNesting) fetches_.push_back({event.subject, event.time_ns});
        in_iterator_ = false;
        break;
      }
      case EventKind::fetch_end:
        scan_fetch_end(event);
        break;
      case EventKind::optimizer_begin:
        if (optimizers_.size() < kMaxNesting) optimizers_.push_back({event.subject, event.time_ns});
        break;
      case EventKind::optimizer_end: {
        // The operator observer sees that an optimizer begins, not which one: subject 0.
        auto open = std::find_if(optimizers_.rbegin(), optimizers_.rend(), [&](const Open& o) {
          return o.subject == event.subject || o.subject == 0;
        });
        if (open != optimizers_.rend()) {
          optimizer_calls_.push_back({open->begin_ns, event.time_ns});
          optimizers_.erase(std::prev(open.base()), optimizers_.end());
        }
        anchors_.push_back(event.time_ns);
        fetches_.clear();
        in_iterator_ = false;
        break;
      }
      case EventKind::user_step:
        fetches_.clear();
        in_iterator_ = false;
        break;
      case EventKind::span_begin:
      case EventKind::span_end:
        scan_span(event, piece);
        break;
      case EventKind::fetch_cpu:
        if (!input_.empty() && !evaluation.contains(input_.intervals().back().begin)) {
          piece.fetch_cpu_ns += std::max<int64_t>(0, event.value);
        }
        break;
      case EventKind::op:
        op_list_.push_back({complete_from_ns, event.time_ns});
        ops_.add(complete_from_ns, event.time_ns);
        break;
      case EventKind::zero_grad:
        zero_grad_.add(complete_from_ns, event.time_ns);
        breaks_.push_back(complete_from_ns);
        break;
      case EventKind::sync:
        sync_.add(complete_from_ns, event.time_ns);
        break;
      case EventKind::copy_to_device:
        copy_.add(complete_from_ns, event.time_ns);
        break;
      default:
        break;
    }
  }

  // What is still open covers the rest of the stretch, and the next one from its begin.
  add_span(end_ns, piece);
  if (!fetches_.empty()) input_.add(fetches_.front().begin_ns, end_ns);
  if (in_iterator_) input_.add(iterator_from_ns_, end_ns);
  if (sampling_)
    piece.observed_ns += std::max<int64_t>(0, end_ns - std::max(sampled_from_ns_, begin_ns));
  if (lossy) reset();
  // No optimizer runs through a whole step: the end of this one was lost.
  std::erase_if(optimizers_, [&](const Open& o) { return o.begin_ns < begin_ns; });
  measure(piece, evaluation);
  return piece;
}

void PhasePainter::measure(Piece& piece, const IntervalSet& evaluation) {
  const int64_t wall_ns = piece.end_ns - piece.begin_ns;
  IntervalSet free(piece.begin_ns, piece.end_ns);
  take(free, explicit_);
  piece.fine[Phase::evaluation] += take(free, evaluation);
  piece.fine[Phase::input_wait] += take(free, input_);
  piece.coarse = piece.fine;
  piece.coarse[Phase::other] += wall_ns - piece.coarse.total();
  if (piece.observed_ns <= 0) {
    piece.fine = piece.coarse;
    return;
  }

  for (const TimeSpan& call : optimizer_calls_) optimizer_.add(call.begin, call.end);
  find_backward();
  find_forward();
  optimizer_.add(zero_grad_);

  const IntervalSet outside = free;  // of spans, evaluation and fetches
  piece.fine[Phase::sync_wait] += take(free, sync_);
  piece.fine[Phase::host_to_device] += take(free, copy_);
  piece.fine[Phase::backward] += take(free, backward_);
  piece.fine[Phase::optimizer] += take(free, optimizer_);
  piece.fine[Phase::forward] += take(free, forward_);
  piece.fine[Phase::other] += wall_ns - piece.fine.total();

  IntervalSet gaps = outside;
  for (const IntervalSet* busy : {&ops_, &sync_, &copy_, &backward_, &optimizer_})
    take(gaps, *busy);
  piece.python_gap_ns = gaps.total();
  piece.operator_ns = outside.total() - piece.python_gap_ns;
  for (const TimeSpan& gap : gaps.intervals()) {
    if (gap.length() > kUserGapNs) piece.user_python_ns += gap.length();
  }
}

}  // namespace gpuutil
