// The two phases that have no begin and end of their own: backward is what lies between autograd
// nodes, forward what leads up to it. Part of PhasePainter.
#include <algorithm>

#include "timeline/phase_painter.h"
#include "timeline/step.h"

namespace gpuutil {
namespace {

// The optimizer call that contains `time_ns`, if any: a closure runs inside it.
const TimeSpan* call_around(const std::vector<TimeSpan>& calls, int64_t time_ns) {
  for (const TimeSpan& call : calls) {
    if (call.begin <= time_ns && time_ns < call.end) return &call;
  }
  return nullptr;
}

bool any_within(const std::vector<int64_t>& sorted, int64_t begin, int64_t end) {
  auto i = std::lower_bound(sorted.begin(), sorted.end(), begin);
  return i != sorted.end() && *i < end;
}

}  // namespace

// One backward pass is a run of nodes with no fetch, no zero_grad and no operator of the training
// thread between them. An optimizer that runs between nodes (optimizer-in-backward) does not end
// the pass; its time is the optimizer's.
void PhasePainter::find_backward() {
  backward_ = nodes_;
  const std::vector<TimeSpan>& nodes = nodes_.intervals();
  std::sort(breaks_.begin(), breaks_.end());
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    const int64_t from = nodes[i].end, until = nodes[i + 1].begin;
    if (any_within(breaks_, from, until)) continue;
    IntervalSet inside;
    for (const TimeSpan& call : optimizer_calls_) {
      if (call.begin >= from && call.begin < until) inside.add(call.begin, call.end);
    }
    auto op = std::lower_bound(op_list_.begin(), op_list_.end(), from,
                               [](const TimeSpan& o, int64_t t) { return o.end <= t; });
    bool broken = false;
    for (; op != op_list_.end() && op->begin < until && !broken; ++op) {
      broken = op->begin >= from && !inside.contains(op->begin);
    }
    if (!broken) backward_.add(subtract(IntervalSet(from, until), inside));
  }
}

// Operators in [from_ns, until_ns), with the pauses between them that are too short to be the
// user's own work.
void PhasePainter::add_forward(int64_t from_ns, int64_t until_ns, bool until_backward) {
  auto op = std::lower_bound(op_list_.begin(), op_list_.end(), from_ns,
                             [](const TimeSpan& o, int64_t t) { return o.end <= t; });
  int64_t last_ns = INT64_MIN;
  for (; op != op_list_.end() && op->begin < until_ns; ++op) {
    if (op->begin < from_ns) continue;
    const bool joined = last_ns != INT64_MIN && op->begin - last_ns <= kUserGapNs;
    forward_.add(joined ? last_ns : op->begin, std::min(op->end, until_ns));
    last_ns = std::max(last_ns, op->end);
  }
  if (until_backward && last_ns != INT64_MIN && until_ns - last_ns <= kUserGapNs) {
    forward_.add(last_ns, until_ns);
  }
}

void PhasePainter::find_forward() {
  // Pauses between nodes make several pieces of one pass where an optimizer ran in them: only the
  // first one has a forward.
  const std::vector<TimeSpan> passes = backward_.intervals();
  std::sort(anchors_.begin(), anchors_.end());
  int64_t last_pass_end = INT64_MIN;
  for (const TimeSpan& pass : passes) {
    auto after = std::upper_bound(anchors_.begin(), anchors_.end(), pass.begin);
    int64_t from = after == anchors_.begin() ? last_pass_end : *std::prev(after);
    from = std::max(from, last_pass_end);
    const TimeSpan* closure = call_around(optimizer_calls_, pass.begin);
    if (closure != nullptr && pass.begin > closure->begin) {
      from = std::max(from, closure->begin);
      // zero_grad opens a new evaluation of the closure, unless backward follows at once.
      for (const TimeSpan& zero : zero_grad_.intervals()) {
        if (zero.begin < from || zero.end > pass.begin) continue;
        const auto operators = std::count_if(
            op_list_.begin(), op_list_.end(),
            [&](const TimeSpan& o) { return o.begin >= zero.end && o.begin < pass.begin; });
        if (operators >= 3) from = zero.end;
      }
      optimizer_ = subtract(optimizer_, IntervalSet(from, pass.begin));
    }
    add_forward(from, pass.begin, true);
    last_pass_end = pass.end;
  }
  // A fetch with no backward after it: forward up to the next fetch or optimizer.
  for (int64_t from : fetch_ends_) {
    int64_t until = INT64_MAX;
    for (const TimeSpan& fetch : input_.intervals()) {
      if (fetch.begin >= from) until = std::min(until, fetch.begin);
    }
    for (const TimeSpan& call : optimizer_calls_) {
      if (call.begin >= from) until = std::min(until, call.begin);
    }
    auto anchor = std::upper_bound(anchors_.begin(), anchors_.end(), from);
    if (anchor != anchors_.end()) until = std::min(until, *anchor);
    const bool has_pass = std::any_of(passes.begin(), passes.end(), [&](const TimeSpan& p) {
      return p.begin >= from && p.begin < until;
    });
    if (!has_pass) add_forward(from, until, false);
  }
}

}  // namespace gpuutil
