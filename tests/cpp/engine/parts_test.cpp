#include <doctest/doctest.h>

#include "engine/loader_book.h"
#include "engine/overhead_meter.h"
#include "engine/pace.h"
#include "engine/sampling_plan.h"

using namespace gpuutil;

namespace {

Step step_of(int64_t wall_ns, bool sampled, uint32_t events = 0) {
  Step step;
  step.end_ns = wall_ns;
  step.micro_steps = 1;
  step.sampled = sampled;
  step.events = events;
  return step;
}

}  // namespace

TEST_CASE("sampling: every second step at the start, then so rarely that it costs what it may") {
  SamplingPlan plan(20);
  CHECK(plan.every() == 1);
  for (int i = 0; i < 19; ++i) {
    plan.add(step_of(1'000'000, true, 160));
    plan.add(step_of(900'000, false));
  }
  CHECK(plan.every() == 1);
  plan.add(step_of(1'000'000, true, 160));
  // 160 events x 700 ns + 4 us = 116 us, against 0.2 % of 900 us: one step in 65.
  CHECK(plan.every() == 65);
  CHECK(plan.sampled_cost_ns() == doctest::Approx(20 * 116'000));
}

TEST_CASE("sampling: long steps are looked into often, but never all the time") {
  SamplingPlan plan(1);
  plan.add(step_of(1'000'000'000, true, 100));
  plan.add(step_of(1'000'000'000, false));
  CHECK(plan.every() == SamplingPlan::kLeastEvery);
}

TEST_CASE("sampling: an outlier does not make the observer look cheap") {
  SamplingPlan plan(1);
  plan.add(step_of(1'000'000, true, 160));
  plan.add(step_of(1'000'000, false));
  const uint32_t before = plan.every();
  plan.add(step_of(60'000'000'000, false));
  CHECK(plan.every() == before);
}

TEST_CASE("sampling: steps that are well known are looked into four times less often") {
  SamplingPlan plan(20);
  for (int i = 0; i < 63; ++i) {
    plan.add(step_of(1'000'000, true, 160));
    plan.add(step_of(900'000, false));
  }
  CHECK(plan.every() == 65);
  plan.add(step_of(1'000'000, true, 160));
  CHECK(plan.every() == 258);
}

TEST_CASE("pace: a run that is known and left alone is looked at less often") {
  const int64_t ms = 1'000'000;
  Pace pace(50 * ms, 500 * ms);
  CHECK(pace.fold_period_ns() == 50 * ms);
  CHECK(pace.host_period_ns() == 500 * ms);
  pace.turned(100, 50 * ms, true, false);
  CHECK(pace.fold_period_ns() == 200 * ms);
  CHECK(pace.host_period_ns() == 1000 * ms);
  pace.turned(400, 200 * ms, true, true);  // what workers do is seen by looking at them
  CHECK(pace.fold_period_ns() == 100 * ms);
  pace.turned(100, 100 * ms, false, false);
  CHECK(pace.fold_period_ns() == 50 * ms);
  CHECK(pace.host_period_ns() == 500 * ms);
}

TEST_CASE("pace: no recorder fills between two turns") {
  const int64_t ms = 1'000'000;
  Pace pace(50 * ms, 500 * ms);
  pace.turned(1024, 50 * ms, true, false);  // a quarter of 8192 would be there after 100 ms
  CHECK(pace.fold_period_ns() == 100 * ms);
  pace.turned(8192, 100 * ms, true, false);  // faster than that: the base pace, as ever
  CHECK(pace.fold_period_ns() == 50 * ms);
}

TEST_CASE("sampling: without the observer nothing is ever sampled") {
  SamplingPlan plan(0);
  CHECK(plan.every() == 0);
}

TEST_CASE("overhead: hooks, sampled steps and our own Python add up, a step at a time") {
  OverheadMeter meter;
  CHECK(!meter.whole(1).microseconds_per_step);
  meter.set_hook_cost(500);
  for (int i = 0; i < 10; ++i) meter.add_step(step_of(1'000'000, false), i == 0 ? 100'000 : 0);
  meter.add_own_time(50'000);
  const Overhead whole = meter.whole(1);
  CHECK(*whole.microseconds_per_step == doctest::Approx(0.5 + 10 + 5));
  CHECK(*whole.ratio == doctest::Approx(155'000.0 / 10'000'000));
  meter.mark();
  CHECK(!meter.since_mark(1).microseconds_per_step);
  meter.add_step(step_of(1'000'000, false), 0);
  CHECK(*meter.since_mark(1).microseconds_per_step == doctest::Approx(0.5));
}

TEST_CASE("loader book: a batch has the loader's size, the last of a pass its own") {
  LoaderBook book;
  LoaderFacts facts;
  facts.id = 7;
  facts.batch_size = 16;
  facts.batches = 3;
  facts.last_batch_size = 5;
  book.set(facts);
  auto fetched = [&](uint16_t flags) {
    Event event;
    event.kind = EventKind::fetch_end;
    event.subject = 7;
    event.flags = flags;
    book.complete(event);
    return event.value;
  };
  for (int pass = 0; pass < 2; ++pass) {
    CHECK(fetched(kFetchBatch) == 16);
    CHECK(fetched(kFetchBatch) == 16);
    CHECK(fetched(kFetchBatch) == 5);
    CHECK(fetched(kFetchExhausted) == 0);
  }
  CHECK(fetched(kFetchBatch) == 16);
  Event begin;  // left early: the next pass begins with a full batch
  begin.kind = EventKind::iter_begin;
  begin.subject = 7;
  book.complete(begin);
  CHECK(fetched(kFetchBatch) == 16);
  CHECK(fetched(kFetchBatch) == 16);
  CHECK(fetched(kFetchBatch) == 5);
}

TEST_CASE("loader book: a loader that is gone stays known, but cannot be changed") {
  LoaderBook book;
  LoaderFacts facts;
  facts.id = 1;
  facts.name = "Photos loader";
  facts.worker_pids = {11, 12};
  book.set(facts);
  CHECK(book.worker_pids() == std::vector<int32_t>{11, 12});
  book.remove(1);
  REQUIRE(book.find(1) != nullptr);
  CHECK(!book.find(1)->workers_changeable);
  CHECK(book.worker_pids().empty());
  REQUIRE(book.names().size() == 1);
  CHECK(book.names()[0].name == "Photos loader");
  for (uint32_t id = 2; id < 500; ++id) {  // a loop that makes a loader an epoch does not grow the book
    facts.id = id;
    book.set(facts);
    book.remove(id);
  }
  CHECK(book.names().size() <= 65);
}

TEST_CASE("loader book: turns are told apart by loader, and forgotten when workers begin to persist") {
  LoaderBook book;
  LoaderFacts facts;
  facts.id = 1;
  book.set(facts);
  facts.id = 2;
  book.set(facts);
  int64_t now_ns = 1;
  const auto pass = [&](uint32_t loader) {
    for (const EventKind kind : {EventKind::iter_begin, EventKind::iter_end, EventKind::fetch_begin,
                                 EventKind::fetch_end}) {
      Event event;
      event.time_ns = now_ns += 1'000'000;
      event.kind = kind;
      event.subject = loader;
      event.flags = kind == EventKind::fetch_end ? kFetchBatch : 0;
      book.complete(event);
    }
  };
  for (int i = 0; i < 3; ++i) pass(1);
  pass(2);
  REQUIRE(book.turn_cost(1));
  CHECK(book.turn_cost(1)->turns == 2);
  CHECK(!book.turn_cost(2));
  CHECK(!book.turn_cost(3));
  facts.id = 1;
  facts.persistent = true;
  book.set(facts);
  CHECK(!book.turn_cost(1));
}
