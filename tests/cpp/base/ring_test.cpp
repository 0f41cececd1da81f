#include "base/ring.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace gpuutil {
namespace {

using SmallRing = SpscRing<int, 8>;

std::vector<int> drained(SmallRing& ring) {
  std::vector<int> values;
  const size_t count = ring.drain([&](int value) { values.push_back(value); });
  CHECK(count == values.size());
  return values;
}

TEST_CASE("a ring hands out what was pushed, once and in order") {
  SmallRing ring;
  CHECK(ring.empty());
  CHECK(drained(ring).empty());
  for (int i = 1; i <= 3; ++i) CHECK(ring.push(i));
  CHECK(ring.size() == 3);
  CHECK(drained(ring) == std::vector<int>{1, 2, 3});
  CHECK(ring.empty());
  CHECK(drained(ring).empty());
}

TEST_CASE("order holds when the indices go round many times") {
  SmallRing ring;
  int pushed = 0;
  int expected = 0;
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i <= round % 8; ++i) REQUIRE(ring.push(pushed++));
    for (const int value : drained(ring)) REQUIRE(value == expected++);
  }
  CHECK(expected == pushed);
  CHECK(ring.dropped() == 0);
}

TEST_CASE("a full ring drops the newest, counts it, and takes values again once drained") {
  SmallRing ring;
  for (int i = 0; i < 8; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(8));
  CHECK_FALSE(ring.push(9));
  CHECK(ring.dropped() == 2);
  CHECK(drained(ring) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(ring.push(10));
  CHECK(drained(ring) == std::vector<int>{10});
  CHECK(ring.dropped() == 2);
}

TEST_CASE("a drain ends with what was there when it began") {
  SmallRing ring;
  ring.push(0);
  size_t calls = 0;
  ring.drain([&](int value) {
    ++calls;
    CHECK(ring.push(value + 1));
  });
  CHECK(calls == 1);
  CHECK(ring.size() == 1);
}

TEST_CASE("a value whose handler throws is not delivered again") {
  SmallRing ring;
  for (int i = 0; i < 3; ++i) ring.push(i);
  const auto throw_at_one = [](int value) {
    if (value == 1) throw std::runtime_error("one");
  };
  CHECK_THROWS_AS(ring.drain(throw_at_one), std::runtime_error);
  CHECK(drained(ring) == std::vector<int>{2});
}

TEST_CASE("clear forgets contents and drops") {
  SmallRing ring;
  for (int i = 0; i < 10; ++i) ring.push(i);
  ring.clear();
  CHECK(ring.empty());
  CHECK(ring.dropped() == 0);
  for (int i = 0; i < 8; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(8));
}

TEST_CASE("between two threads nothing is lost unless counted, torn, doubled or reordered") {
  struct Pair {
    uint64_t number;
    uint64_t inverse;
  };
  constexpr uint64_t kPushes = 300'000;
  const auto ring = std::make_unique<SpscRing<Pair, 64>>();
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (uint64_t i = 0; i < kPushes; ++i) {
      // Now and then the producer gives way, so that both a full and an empty ring occur.
      if (!ring->push({i, ~i})) std::this_thread::yield();
    }
    done.store(true, std::memory_order_release);
  });
  uint64_t received = 0;
  uint64_t torn = 0;
  uint64_t disordered = 0;
  uint64_t next = 0;
  const auto take = [&](const Pair& pair) {
    torn += pair.inverse != ~pair.number ? 1 : 0;
    disordered += pair.number < next ? 1 : 0;
    next = pair.number + 1;
    ++received;
  };
  while (!done.load(std::memory_order_acquire)) {
    if (ring->drain(take) == 0) std::this_thread::yield();
  }
  ring->drain(take);
  producer.join();
  CHECK(torn == 0);
  CHECK(disordered == 0);
  CHECK(received > 0);
  CHECK(received + ring->dropped() == kPushes);
}

}  // namespace
}  // namespace gpuutil
