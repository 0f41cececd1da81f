// A set of half-open intervals of integer nanoseconds, kept sorted, disjoint and not touching, so
// that every total is exact. Pure values: no clock, no lock; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuutil {

struct TimeSpan {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t length() const { return end - begin; }
  bool operator==(const TimeSpan&) const = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;
  IntervalSet(int64_t begin, int64_t end) { add(begin, end); }

  // Empty and inverted intervals add nothing. Amortised constant where intervals come in order of
  // their ends.
  void add(int64_t begin, int64_t end);
  void add(const IntervalSet& more);
  void clear() { intervals_.clear(); }

  // What lies in [begin, end).
  IntervalSet clipped(int64_t begin, int64_t end) const;
  // Forgets everything before `begin`.
  void drop_before(int64_t begin);
  int64_t total() const;
  int64_t total_within(int64_t begin, int64_t end) const;
  bool contains(int64_t time) const;

  const std::vector<TimeSpan>& intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  size_t size() const { return intervals_.size(); }
  bool operator==(const IntervalSet&) const = default;

 private:
  std::vector<TimeSpan> intervals_;
};

IntervalSet unite(const IntervalSet& a, const IntervalSet& b);
IntervalSet intersect(const IntervalSet& a, const IntervalSet& b);
IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);

}  // namespace gpuutil
