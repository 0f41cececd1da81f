#include "profile/turn_book.h"

#include <vector>

#include "base/robust.h"

namespace gpuutil {

void TurnBook::observe(const Event& event) {
  switch (event.kind) {
    case EventKind::iter_begin:
      begin_pass(event.time_ns);
      break;
    case EventKind::iter_end:
      if (iter_begin_ns_ > 0) next_.iter_ns += event.time_ns - iter_begin_ns_;
      iter_begin_ns_ = 0;
      break;
    case EventKind::fetch_begin:
      fetch_begin_ns_ = event.time_ns;
      break;
    case EventKind::fetch_end:
      if (fetch_begin_ns_ > 0) end_fetch(event);
      fetch_begin_ns_ = 0;
      break;
    default:
      break;
  }
}

void TurnBook::begin_pass(int64_t time_ns) {
  iter_begin_ns_ = time_ns;
  if (passing_ && batches_ == 0) return;  // iterated again before its first batch: still the same turn
  const Turn before = next_;
  next_ = Turn{};
  turning_ = passing_;
  if (passing_) {
    next_.epoch_ns = time_ns - pass_begin_ns_;
    next_.end_ns = exhausted_ns_;
    next_.usual_ns = batches_ > 1 ? later_ns_ / (batches_ - 1) : before.first_ns;
  }
  passing_ = true;
  pass_begin_ns_ = time_ns;
  exhausted_ns_ = later_ns_ = batches_ = 0;
}

void TurnBook::end_fetch(const Event& event) {
  const int64_t took_ns = event.time_ns - fetch_begin_ns_;
  if ((event.flags & kFetchExhausted) != 0) exhausted_ns_ = took_ns;
  if ((event.flags & kFetchBatch) == 0) return;
  if (++batches_ > 1) {
    later_ns_ += took_ns;
    return;
  }
  next_.first_ns = took_ns;
  if (!turning_) return;
  turns_.push_back(next_);
  if (turns_.size() > kKept) turns_.pop_front();
}

std::optional<TurnCost> TurnBook::cost() const {
  if (turns_.empty()) return std::nullopt;
  const auto usual = [&](int64_t Turn::*part) {
    std::vector<double> values;
    for (const Turn& turn : turns_) values.push_back(static_cast<double>(turn.*part));
    return median(values).value_or(0) * 1e-9;
  };
  TurnCost cost;
  cost.turns = static_cast<int32_t>(turns_.size());
  cost.epoch_seconds = usual(&Turn::epoch_ns);
  cost.end_seconds = usual(&Turn::end_ns);
  cost.iter_seconds = usual(&Turn::iter_ns);
  cost.first_fetch_seconds = usual(&Turn::first_ns);
  cost.usual_fetch_seconds = usual(&Turn::usual_ns);
  return cost;
}

}  // namespace gpuutil
