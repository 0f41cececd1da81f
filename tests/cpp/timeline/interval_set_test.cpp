#include "timeline/interval_set.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace gpuutil;

namespace {

constexpr int64_t kTimes = 64;

// The same set as one bit a nanosecond.
using Bits = std::vector<bool>;

Bits bits_of(const IntervalSet& set) {
  Bits bits(kTimes, false);
  for (const TimeSpan& i : set.intervals()) {
    for (int64_t t = i.begin; t < i.end; ++t) bits[static_cast<size_t>(t)] = true;
  }
  return bits;
}

IntervalSet random_set(std::mt19937& random, Bits& bits) {
  IntervalSet set;
  bits.assign(kTimes, false);
  const int n = static_cast<int>(random() % 12);
  for (int i = 0; i < n; ++i) {
    const auto begin = static_cast<int64_t>(random() % kTimes);
    const auto end = static_cast<int64_t>(random() % kTimes);  // often empty or inverted
    set.add(begin, end);
    for (int64_t t = begin; t < end; ++t) bits[static_cast<size_t>(t)] = true;
  }
  return set;
}

void check_normal(const IntervalSet& set) {
  int64_t last = INT64_MIN;
  for (const TimeSpan& i : set.intervals()) {
    REQUIRE(i.begin < i.end);
    REQUIRE(i.begin > last);  // neither overlapping nor touching
    last = i.end;
  }
}

}  // namespace

TEST_CASE("touching and overlapping intervals become one, empty ones vanish") {
  IntervalSet set;
  set.add(10, 20);
  set.add(20, 30);
  set.add(5, 5);
  set.add(9, 3);
  CHECK(set.intervals() == std::vector<TimeSpan>{{10, 30}});
  set.add(40, 50);
  set.add(0, 45);
  CHECK(set.intervals() == std::vector<TimeSpan>{{0, 50}});
  CHECK(set.total() == 50);
  CHECK(set.contains(0));
  CHECK_FALSE(set.contains(50));
}

TEST_CASE("set operations agree with one bit a nanosecond on random sets") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Bits a_bits, b_bits;
    const IntervalSet a = random_set(random, a_bits), b = random_set(random, b_bits);
    check_normal(a);
    REQUIRE(bits_of(a) == a_bits);
    const IntervalSet both = intersect(a, b), any = unite(a, b), rest = subtract(a, b);
    for (const IntervalSet* set : {&both, &any, &rest}) check_normal(*set);
    Bits expect_both(kTimes), expect_any(kTimes), expect_rest(kTimes);
    for (size_t t = 0; t < kTimes; ++t) {
      expect_both[t] = a_bits[t] && b_bits[t];
      expect_any[t] = a_bits[t] || b_bits[t];
      expect_rest[t] = a_bits[t] && !b_bits[t];
    }
    REQUIRE(bits_of(both) == expect_both);
    REQUIRE(bits_of(any) == expect_any);
    REQUIRE(bits_of(rest) == expect_rest);
    REQUIRE(any.total() == a.total() + b.total() - both.total());
    REQUIRE(rest.total() == a.total() - both.total());

    const auto from = static_cast<int64_t>(random() % kTimes),
               to = static_cast<int64_t>(random() % kTimes);
    const IntervalSet window(from, to);
    REQUIRE(a.clipped(from, to) == intersect(a, window));
    REQUIRE(a.total_within(from, to) == intersect(a, window).total());
    IntervalSet later = a;
    later.drop_before(from);
    REQUIRE(later == intersect(a, IntervalSet(from, kTimes)));
    REQUIRE(a.contains(from) == a_bits[static_cast<size_t>(from)]);
  }
}
