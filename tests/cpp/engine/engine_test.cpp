#include <doctest/doctest.h>

#include <string>

#include "base/clock.h"
#include "engine/engine.h"

using namespace gpuutil;

namespace {

// An engine without its thread, fed with hand-made events that end now.
struct Bench {
  RecorderRegistry registry;
  uint32_t attention = 0;
  uint32_t every = 99;
  Engine engine;
  int64_t time_ns;

  explicit Bench(EngineOptions options = {})
      : engine(with_defaults(std::move(options)), registry, signals()), time_ns(now_ns()) {}

  static EngineOptions with_defaults(EngineOptions options) {
    options.own_thread = false;
    options.apply = "observe";
    options.root = GPUUTIL_TEST_DATA "/none";
    return options;
  }
  EngineSignals signals() {
    EngineSignals result;
    result.raise_attention = [this](uint32_t bits) { attention |= bits; };
    result.set_sampling = [this](uint32_t n, uint32_t) { every = n; };
    return result;
  }
  void emit(EventKind kind, int64_t at_ns, uint32_t subject = 0, uint16_t flags = 0, int64_t value = 0) {
    Event event;
    event.time_ns = at_ns;
    event.kind = kind;
    event.subject = subject;
    event.flags = flags;
    event.value = value;
    registry.emit(event);
  }
  // Steps in the near future are folded once the clock has passed them; these last nanoseconds.
  void epoch(int steps) {
    emit(EventKind::iter_begin, now_ns(), 1);
    emit(EventKind::iter_end, now_ns(), 1);
    for (int i = 0; i < steps; ++i) {
      emit(EventKind::fetch_begin, now_ns(), 1);
      emit(EventKind::fetch_end, now_ns(), 1, kFetchBatch, 4);
      emit(EventKind::optimizer_end, now_ns(), 5);
    }
    emit(EventKind::fetch_begin, now_ns(), 1);
    emit(EventKind::fetch_end, now_ns(), 1, kFetchExhausted);
  }
};

}  // namespace

TEST_CASE("engine: an epoch that ended is one report, in the log and as JSON") {
  Bench bench;
  bench.epoch(30);
  bench.epoch(30);
  bench.engine.flush();
  bench.engine.finish();
  const auto epochs = bench.engine.take_epochs();
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0].text.substr(0, 18) == "epoch 1: 30 steps,");
  CHECK(epochs[1].json.find("\"epoch\":2") != std::string::npos);
  CHECK(bench.engine.take_epochs().empty());
  CHECK(bench.engine.epochs().size() == 2);
  CHECK((bench.attention & 2u) != 0);
}

TEST_CASE("engine: without the operator observer nothing is sampled") {
  EngineOptions options;
  options.startup_steps = 0;
  Bench bench(options);
  bench.epoch(5);
  bench.engine.flush();
  CHECK(bench.every == 0);
}

TEST_CASE("engine: observing never yields a command") {
  Bench bench;
  bench.epoch(200);
  bench.engine.flush();
  CHECK(!bench.engine.next_command());
  CHECK(bench.engine.ledger_json() == "[]");
}

TEST_CASE("engine: a host that cannot be read is a state, not an error") {
  EngineOptions options;
  options.host_period_seconds = 0.001;
  options.period_seconds = 0.001;
  options.own_thread = true;
  options.root = GPUUTIL_TEST_DATA "/none";
  RecorderRegistry registry;
  EngineSignals signals;
  signals.raise_attention = [](uint32_t) {};
  signals.set_sampling = [](uint32_t, uint32_t) {};
  Engine engine(options, registry, signals);
  for (int i = 0; i < 20; ++i) engine.flush();
  engine.stop_thread();
  CHECK(engine.run_json().find("\"cpu_budget\":{\"cores\":null") != std::string::npos);
}

TEST_CASE("engine: wrong ids from the hands change nothing") {
  Bench bench;
  bench.engine.command_applied(42);
  bench.engine.command_effective(42);
  bench.engine.command_failed(42, "never asked");
  CHECK(!bench.engine.request_revert(3).empty());
  CHECK(bench.engine.ledger_json() == "[]");
}
