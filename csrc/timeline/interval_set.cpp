#include "timeline/interval_set.h"

#include <algorithm>

namespace gpuutil {
namespace {

// The first interval that ends after `time`.
std::vector<TimeSpan>::const_iterator first_after(const std::vector<TimeSpan>& list, int64_t time) {
  return std::upper_bound(list.begin(), list.end(), time,
                          [](int64_t t, const TimeSpan& i) { return t < i.end; });
}

}  // namespace

void IntervalSet::add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (intervals_.empty() || begin > intervals_.back().end) {
    intervals_.push_back({begin, end});
    return;
  }
  // The first that touches or follows [begin, end), and one past the last that touches it.
  auto first = std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                                [](const TimeSpan& i, int64_t t) { return i.end < t; });
  auto last = first;
  while (last != intervals_.end() && last->begin <= end) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
    ++last;
  }
  if (first == last) {
    intervals_.insert(first, {begin, end});
    return;
  }
  *first = {begin, end};
  intervals_.erase(first + 1, last);
}

void IntervalSet::add(const IntervalSet& more) {
  for (const TimeSpan& i : more.intervals_) add(i.begin, i.end);
}

IntervalSet IntervalSet::clipped(int64_t begin, int64_t end) const {
  IntervalSet result;
  for (auto i = first_after(intervals_, begin); i != intervals_.end() && i->begin < end; ++i) {
    result.add(std::max(begin, i->begin), std::min(end, i->end));
  }
  return result;
}

void IntervalSet::drop_before(int64_t begin) {
  if (intervals_.empty()) return;
  intervals_.erase(intervals_.begin(), first_after(intervals_, begin));
  if (!intervals_.empty()) intervals_.front().begin = std::max(begin, intervals_.front().begin);
}

int64_t IntervalSet::total() const {
  int64_t sum = 0;
  for (const TimeSpan& i : intervals_) sum += i.length();
  return sum;
}

int64_t IntervalSet::total_within(int64_t begin, int64_t end) const {
  int64_t sum = 0;
  for (auto i = first_after(intervals_, begin); i != intervals_.end() && i->begin < end; ++i) {
    sum += std::max<int64_t>(0, std::min(end, i->end) - std::max(begin, i->begin));
  }
  return sum;
}

bool IntervalSet::contains(int64_t time) const {
  auto i = first_after(intervals_, time);
  return i != intervals_.end() && i->begin <= time;
}

IntervalSet unite(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  auto i = a.intervals().begin(), j = b.intervals().begin();
  while (i != a.intervals().end() || j != b.intervals().end()) {
    const bool take_a =
        j == b.intervals().end() || (i != a.intervals().end() && i->begin < j->begin);
    const TimeSpan& next = take_a ? *i++ : *j++;
    result.add(next.begin, next.end);
  }
  return result;
}

IntervalSet intersect(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  auto i = a.intervals().begin(), j = b.intervals().begin();
  while (i != a.intervals().end() && j != b.intervals().end()) {
    result.add(std::max(i->begin, j->begin), std::min(i->end, j->end));
    i->end < j->end ? ++i : ++j;
  }
  return result;
}

IntervalSet subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  auto j = b.intervals().begin();
  for (const TimeSpan& piece : a.intervals()) {
    int64_t begin = piece.begin;
    while (j != b.intervals().end() && j->end <= begin) ++j;
    for (auto k = j; k != b.intervals().end() && k->begin < piece.end; ++k) {
      result.add(begin, k->begin);
      begin = std::max(begin, k->end);
    }
    result.add(begin, piece.end);
  }
  return result;
}

}  // namespace gpuutil
