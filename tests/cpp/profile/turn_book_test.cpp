#include "profile/turn_book.h"

#include <doctest/doctest.h>

using namespace gpuutil;

namespace {

constexpr int64_t kMs = 1'000'000;

// A loop over one loader, told event by event.
struct Loop {
  TurnBook book;
  int64_t now_ns = 1'000 * kMs;

  void tell(EventKind kind, int64_t after_ms, uint16_t flags = 0) {
    now_ns += after_ms * kMs;
    Event event;
    event.time_ns = now_ns;
    event.kind = kind;
    event.flags = flags;
    book.observe(event);
  }
  void iterate(int64_t ms) {
    tell(EventKind::iter_begin, 0);
    tell(EventKind::iter_end, ms);
  }
  void fetch(int64_t ms, uint16_t flags = kFetchBatch) {
    tell(EventKind::fetch_begin, 0);
    tell(EventKind::fetch_end, ms, flags);
  }
  // 10 ms of work for each batch.
  void pass(int64_t iter_ms, int64_t first_ms, int batches, int64_t later_ms, int64_t end_ms) {
    iterate(iter_ms);
    for (int i = 0; i < batches; ++i) {
      fetch(i == 0 ? first_ms : later_ms);
      now_ns += 10 * kMs;
    }
    fetch(end_ms, kFetchExhausted);
  }
};

}  // namespace

TEST_CASE("turns: the end of a pass, the start of the next one and its first batch are told apart") {
  Loop loop;
  loop.pass(900, 500, 5, 1, 30);
  CHECK(!loop.book.cost());
  loop.pass(40, 60, 5, 2, 20);
  REQUIRE(loop.book.cost());
  TurnCost cost = *loop.book.cost();
  CHECK(cost.turns == 1);
  CHECK(cost.end_seconds == doctest::Approx(0.030));
  CHECK(cost.iter_seconds == doctest::Approx(0.040));
  CHECK(cost.first_fetch_seconds == doctest::Approx(0.060));
  CHECK(cost.usual_fetch_seconds == doctest::Approx(0.001));
  CHECK(cost.epoch_seconds == doctest::Approx(0.900 + 0.500 + 0.050 + 0.004 + 0.030));
}

TEST_CASE("turns: figures are medians, so that the first epoch of a process does not make them") {
  Loop loop;
  loop.pass(3000, 500, 5, 1, 10);
  for (int i = 0; i < 4; ++i) loop.pass(40, 60, 5, 1, 10);
  const TurnCost cost = *loop.book.cost();
  CHECK(cost.turns == 4);
  CHECK(cost.epoch_seconds == doctest::Approx(0.040 + 0.060 + 0.050 + 0.004 + 0.010));
}

TEST_CASE("turns: only the latest count") {
  Loop loop;
  for (int i = 0; i < 5; ++i) loop.pass(400, 60, 5, 1, 10);
  for (int i = 0; i < 8; ++i) loop.pass(2, 6, 5, 1, 0);
  CHECK(loop.book.cost()->turns == 8);
  CHECK(loop.book.cost()->iter_seconds == doctest::Approx(0.002));
}

TEST_CASE("turns: a pass that is left early is one too, without an end") {
  Loop loop;
  for (int i = 0; i < 3; ++i) {
    loop.iterate(40);
    loop.fetch(60);
    loop.fetch(1);
  }
  CHECK(loop.book.cost()->turns == 2);
  CHECK(loop.book.cost()->end_seconds == 0);
  CHECK(loop.book.cost()->iter_seconds == doctest::Approx(0.040));
}

TEST_CASE("turns: two iterators of one loader side by side make one turn") {
  Loop loop;
  for (int i = 0; i < 2; ++i) {
    loop.iterate(40);
    loop.iterate(40);
    loop.fetch(60);
    loop.fetch(50);
    loop.fetch(0, kFetchExhausted);
  }
  CHECK(loop.book.cost()->turns == 1);
  CHECK(loop.book.cost()->iter_seconds == doctest::Approx(0.080));
}

TEST_CASE("turns: a fetch that failed is no batch") {
  Loop loop;
  loop.pass(40, 60, 3, 1, 10);
  loop.iterate(40);
  loop.fetch(500, kFetchError);
  CHECK(!loop.book.cost());
  loop.fetch(60);
  CHECK(loop.book.cost()->first_fetch_seconds == doctest::Approx(0.060));
}

TEST_CASE("turns: what began before anybody looked is not a pass") {
  Loop loop;
  loop.fetch(1);
  loop.fetch(1, kFetchExhausted);
  loop.tell(EventKind::fetch_end, 5, kFetchBatch);  // its begin was lost
  loop.pass(40, 60, 3, 1, 10);
  CHECK(!loop.book.cost());
  loop.pass(40, 60, 3, 1, 10);
  CHECK(loop.book.cost()->turns == 1);
}
