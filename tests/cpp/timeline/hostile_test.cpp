// Late attach, lost events, garbage: whatever comes, no time is lost, doubled or negative.
#include <random>

#include "stream.h"

using namespace gpuutil;
using namespace gpuutil::test;

namespace {

// The stream without its first events, as if we had been attached then.
Stream from(const Stream& whole, size_t first) {
  Stream late(whole.events()[first].event.time_ns);
  late.at(whole.now_ns());
  late.events().assign(whole.events().begin() + static_cast<std::ptrdiff_t>(first),
                       whole.events().end());
  return late;
}

Stream accumulating_with_evaluation(int epochs) {
  Stream s = loop();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    s.iter();
    for (int step = 0; step < 6; ++step) {
      s.sampling(step % 2 == 1);
      for (int k = 0; k < 3; ++k) s.fetch(10_ms).forward(5_ms).backward(5_ms);
      s.optimizer(2_ms);
    }
    s.exhausted().iter(kValid);
    for (int i = 0; i < 4; ++i) s.fetch(5_ms, kValid).forward(3_ms);
    s.exhausted(kValid);
  }
  return s;
}

Outcome run(const Stream& s) { return assemble(s); }

}  // namespace

TEST_CASE("attached anywhere in the middle, later epochs have the right steps") {
  const Stream whole = accumulating_with_evaluation(4);
  for (size_t first = 1; first < whole.events().size() / 4; ++first) {
    CAPTURE(first);
    const Outcome o = run(from(whole, first));
    REQUIRE(o.turns.size() >= 4);
    const size_t n = o.turns.size();
    for (size_t i = n - 4; i < n - 1; ++i) {
      if (i == n - 4) continue;  // the one that was under way
      CHECK(o.turns[i].kind == EpochEnd::exhausted);
      CHECK(o.turns[i].steps == 6);
    }
    for (const Step& step : o.steps) {
      if (step.epoch == o.turns[n - 2].epoch) CHECK(step.micro_steps == 3);
    }
    CHECK((o.steps.front().marks & kStepFirst) != 0);
  }
}

TEST_CASE("attached inside a fetch, the time of that fetch is other and the next one is a wait") {
  Stream s = loop();
  s.pass(30_ms)
      .put(EventKind::fetch_end, kTrain, 16, kFetchBatch)
      .pass(10_ms)
      .optimizer(5_ms)
      .plain_steps(5);
  const Outcome o = run(s);
  REQUIRE(o.steps.size() == 6);
  CHECK(o.steps[0].wall_ns() == 45_ms);
  CHECK(o.steps[0].micro_steps == 1);
  CHECK(o.steps[0].phases[Phase::input_wait] == 0);
  CHECK(o.steps[1].phases[Phase::input_wait] == 80_ms);
}

TEST_CASE("a lost end of a fetch makes no wait of what follows") {
  Stream s = loop();
  s.iter()
      .plain_steps(5)
      .put(EventKind::fetch_begin, kTrain)
      .pass(115_ms)
      .optimizer_end()
      .plain_steps(5);
  const Outcome o = run(s);
  REQUIRE(o.steps.size() == 11);
  CHECK(o.steps[5].phases[Phase::input_wait] == 0);
  CHECK(o.steps[6].phases[Phase::input_wait] == 80_ms);
}

TEST_CASE("nothing stays open where events were lost") {
  Stream s = loop();
  s.iter().plain_steps(5).span_begin(Phase::checkpoint);
  const int64_t lost_ns = s.now_ns() + 1_ms;
  s.plain_steps(5);
  Outcome o;
  StepAssembler assembler([&](const Step& step) { o.steps.push_back(step); },
                          [&](const EpochTurn& t) { o.turns.push_back(t); }, s.start_ns());
  assembler.mark(lost_ns, kStepDropped);
  feed(assembler, s.events(), s.start_ns());
  assembler.flush(s.now_ns());
  check_exact(o, s.start_ns(), s.now_ns());
  REQUIRE(o.steps.size() == 10);
  CHECK(o.steps[5].phases[Phase::checkpoint] == 115_ms);
  CHECK((o.steps[5].marks & kStepDropped) != 0);
  CHECK(o.steps[6].phases[Phase::checkpoint] == 0);
  CHECK(o.steps[6].marks == kStepClean);
}

TEST_CASE("a loader inside another loader's fetch is part of that fetch") {
  Stream s = loop();
  s.iter();
  for (int i = 0; i < 6; ++i) {
    s.put(EventKind::fetch_begin, kTrain)
        .pass(10_ms)
        .iter(kSecond)
        .fetch(20_ms, kSecond)
        .exhausted(kSecond);
    s.put(EventKind::fetch_end, kTrain, 16, kFetchBatch).optimizer(5_ms);
  }
  const Outcome o = run(s);
  REQUIRE(o.steps.size() == 6);
  for (const Step& step : o.steps) CHECK(step.micro_steps == 1);
  CHECK(o.steps[4].phases[Phase::input_wait] == 31_ms + 100_us);
  CHECK(o.turns.size() == 1);
}

TEST_CASE("a time that runs back a little changes no sum") {
  Stream s = loop();
  s.iter().plain_steps(5).pass(-2_ms).plain_steps(5);
  const Outcome o = run(s);
  CHECK(o.steps.size() == 10);
}

TEST_CASE("more operator events than are held make the step unsampled, not wrong") {
  Stream s = loop();
  s.iter().plain_steps(5).sampling(true).fetch(80_ms);
  for (size_t i = 0; i < StepAssembler::kMaxDetail + 1000; ++i) s.complete(EventKind::op, 1_us);
  s.optimizer(5_ms).sampling(false).plain_steps(3);
  const Outcome o = run(s);
  REQUIRE(o.steps.size() == 9);
  CHECK_FALSE(o.steps[5].sampled);
  CHECK((o.steps[5].marks & kStepDropped) != 0);
  CHECK(o.steps[5].phases[Phase::input_wait] == 80_ms);
  CHECK(o.steps[6].marks == kStepClean);
}

TEST_CASE("after a flush time goes on where it ended") {
  Stream s = loop();
  s.iter().plain_steps(6);
  Outcome o;
  StepAssembler assembler([&](const Step& step) { o.steps.push_back(step); },
                          [&](const EpochTurn& t) { o.turns.push_back(t); }, s.start_ns());
  feed(assembler, s.events(), s.start_ns());
  assembler.flush(s.now_ns() + 3_ms);
  Stream more(s.now_ns() + 3_ms);
  more.plain_steps(6).exhausted();
  feed(assembler, more.events(), more.start_ns());
  assembler.flush(more.now_ns());
  check_exact(o, s.start_ns(), more.now_ns());
  CHECK(o.steps.size() == 12);
}

TEST_CASE("steps and epochs stay exact on streams with events lost, doubled, moved and invented") {
  std::mt19937 random(20240131);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    Stream s = accumulating_with_evaluation(1 + static_cast<int>(below(3)));
    if (below(2) == 0) s.plain_steps(5);
    std::vector<ThreadEvent>& events = s.events();
    const uint32_t kinds = static_cast<uint32_t>(EventKind::range) + 1;
    const uint32_t faults = below(60);
    for (uint32_t i = 0; i < faults; ++i) {
      const auto at =
          events.begin() + static_cast<std::ptrdiff_t>(below(static_cast<uint32_t>(events.size())));
      switch (below(6)) {
        case 0:
          events.erase(at);
          break;
        case 1:
          events.insert(at, *at);
          break;
        case 2:
          at->event.time_ns += static_cast<int64_t>(below(20'000'000)) - 10'000'000;
          break;
        case 3:
          at->event.kind = static_cast<EventKind>(below(kinds));
          break;
        case 4:
          at->event.value = static_cast<int64_t>(below(3'000'000'000)) - 1'000'000'000;
          break;
        default:
          at->thread = 1 + below(4);
          break;
      }
    }
    if (below(4) == 0) {  // nothing but garbage
      for (ThreadEvent& e : events) {
        e.event.kind = static_cast<EventKind>(below(kinds));
        e.event.subject = below(14);
        e.event.flags = static_cast<uint16_t>(below(32));
        if (below(8) == 0) e.thread = 1 + below(4);
      }
    }
    int64_t end_ns = s.now_ns();
    for (const ThreadEvent& e : events) end_ns = std::max(end_ns, e.event.time_ns);
    s.at(end_ns);
    run(s);
  }
}

TEST_CASE("how the events are cut into drains changes nothing") {
  const Stream s = accumulating_with_evaluation(3);
  const Outcome whole = run(s);
  for (const int64_t slice_ns : {1_ms, 7_ms, 200_ms, 5_s}) {
    Outcome o;
    StepAssembler assembler([&](const Step& step) { o.steps.push_back(step); },
                            [&](const EpochTurn& t) { o.turns.push_back(t); }, s.start_ns());
    feed(assembler, s.events(), s.start_ns(), slice_ns);
    assembler.flush(s.now_ns());
    REQUIRE(o.steps.size() == whole.steps.size());
    REQUIRE(o.turns.size() == whole.turns.size());
    for (size_t i = 0; i < o.steps.size(); ++i) {
      CHECK(o.steps[i].end_ns == whole.steps[i].end_ns);
      CHECK(o.steps[i].phases.ns == whole.steps[i].phases.ns);
      CHECK(o.steps[i].marks == whole.steps[i].marks);
    }
  }
}
