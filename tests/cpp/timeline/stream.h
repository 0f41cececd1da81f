// Hand-made event streams that read like the loop that would record them, and what the assembler
// makes of them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "timeline/step_assembler.h"

namespace gpuutil::test {

constexpr int64_t operator""_us(unsigned long long n) { return static_cast<int64_t>(n) * 1'000; }
constexpr int64_t operator""_ms(unsigned long long n) {
  return static_cast<int64_t>(n) * 1'000'000;
}
constexpr int64_t operator""_s(unsigned long long n) {
  return static_cast<int64_t>(n) * 1'000'000'000;
}

constexpr uint32_t kMain = 1, kWorker = 2, kAutograd = 3;        // threads
constexpr uint32_t kTrain = 10, kValid = 11, kSecond = 12;       // loaders
constexpr uint32_t kSgd = 100, kCritic = 101, kGenerator = 102;  // optimizers

// Calls advance the clock of the thread that they happen on. Operator events only while sampling.
class Stream {
 public:
  explicit Stream(int64_t start_ns = 1_s) : start_ns_(start_ns), now_ns_(start_ns) {}

  // What follows happens on this thread.
  Stream& on(uint32_t thread) {
    thread_ = thread;
    return *this;
  }
  Stream& at(int64_t now_ns) {
    now_ns_ = now_ns;
    return *this;
  }
  Stream& pass(int64_t ns) {
    now_ns_ += ns;
    return *this;
  }
  Stream& put(EventKind kind, uint32_t subject = 0, int64_t value = 0, uint16_t flags = 0) {
    Event event;
    event.time_ns = now_ns_;
    event.kind = kind;
    event.subject = subject;
    event.value = value;
    event.flags = flags;
    events_.push_back({event, thread_});
    return *this;
  }

  Stream& iter(uint32_t loader = kTrain, int64_t ns = 100_us) {
    return put(EventKind::iter_begin, loader).pass(ns).put(EventKind::iter_end, loader);
  }
  Stream& fetch(int64_t wait_ns, uint32_t loader = kTrain, int64_t samples = 16,
                uint16_t more = 0) {
    put(EventKind::fetch_begin, loader).pass(wait_ns);
    return put(EventKind::fetch_end, loader, samples, static_cast<uint16_t>(kFetchBatch | more));
  }
  Stream& exhausted(uint32_t loader = kTrain, int64_t wait_ns = 1_ms) {
    put(EventKind::fetch_begin, loader).pass(wait_ns);
    return put(EventKind::fetch_end, loader, 0, kFetchExhausted);
  }
  // `operators` of equal length that fill the time but for `gap_ns` after each.
  Stream& forward(int64_t ns, int operators = 4, int64_t gap_ns = 0) {
    if (!sampling_) return pass(ns);
    const int64_t each_ns = ns / operators;
    for (int i = 0; i < operators; ++i) {
      const int64_t left = i + 1 == operators ? ns - each_ns * (operators - 1) : each_ns;
      pass(left - gap_ns).put(EventKind::op, 0, left - gap_ns).pass(gap_ns);
    }
    return *this;
  }
  Stream& backward(int64_t ns, uint32_t node_thread = 0) {
    if (!sampling_) return pass(ns);
    const uint32_t thread = thread_;
    if (node_thread != 0) on(node_thread);
    pass(ns / 2 - 1_us).put(EventKind::backward_node, 0, ns / 2 - 1_us);
    pass(ns - ns / 2 + 1_us).put(EventKind::backward_node, 0, ns - ns / 2);
    return on(thread);
  }
  Stream& optimizer_begin(uint32_t id = kSgd) {
    // The operator observer does not know which optimizer it is; odd ids stand for one that does.
    return sampling_ ? put(EventKind::optimizer_begin, id % 2 == 0 ? 0 : id) : *this;
  }
  Stream& optimizer_end(uint32_t id = kSgd) { return put(EventKind::optimizer_end, id); }
  Stream& optimizer(int64_t ns, uint32_t id = kSgd) {
    return optimizer_begin(id).pass(ns).optimizer_end(id);
  }
  Stream& complete(EventKind kind, int64_t ns) {
    return sampling_ ? pass(ns).put(kind, 0, ns) : pass(ns);
  }
  Stream& zero_grad(int64_t ns) { return complete(EventKind::zero_grad, ns); }
  Stream& sync(int64_t ns) { return complete(EventKind::sync, ns); }
  Stream& copy(int64_t ns) { return complete(EventKind::copy_to_device, ns); }
  Stream& span_begin(Phase phase) {
    return put(EventKind::span_begin, static_cast<uint32_t>(phase));
  }
  Stream& span_end(Phase phase) { return put(EventKind::span_end, static_cast<uint32_t>(phase)); }
  Stream& span(Phase phase, int64_t ns) { return span_begin(phase).pass(ns).span_end(phase); }
  Stream& user_step() { return put(EventKind::user_step); }
  Stream& user_epoch(int64_t n) { return put(EventKind::user_epoch, 0, n); }
  Stream& sampling(bool on) {
    sampling_ = on;
    return put(on ? EventKind::sampling_begin : EventKind::sampling_end);
  }

  // wait 80 ms, forward 10, backward 20, optimizer 5.
  Stream& plain_step(uint32_t loader = kTrain, int64_t samples = 16) {
    return fetch(80_ms, loader, samples).forward(10_ms).backward(20_ms).optimizer(5_ms);
  }
  Stream& plain_steps(int n) {
    for (int i = 0; i < n; ++i) plain_step();
    return *this;
  }

  int64_t start_ns() const { return start_ns_; }
  int64_t now_ns() const { return now_ns_; }
  const std::vector<ThreadEvent>& events() const { return events_; }
  std::vector<ThreadEvent>& events() { return events_; }

 private:
  int64_t start_ns_, now_ns_;
  uint32_t thread_ = kMain;
  bool sampling_ = false;
  std::vector<ThreadEvent> events_;
};

inline Stream loop() { return Stream(); }

struct Outcome {
  std::vector<Step> steps;
  std::vector<EpochTurn> turns;
};

// As the engine does it: every 50 ms all threads are drained, one after another.
inline void feed(StepAssembler& assembler, const std::vector<ThreadEvent>& events, int64_t start_ns,
                 int64_t slice_ns = 50_ms) {
  std::vector<uint32_t> threads;
  int64_t last_ns = start_ns;
  for (const ThreadEvent& e : events) {
    last_ns = std::max(last_ns, e.event.time_ns);
    if (std::find(threads.begin(), threads.end(), e.thread) == threads.end())
      threads.push_back(e.thread);
  }
  std::vector<size_t> next(threads.size(), 0);
  for (int64_t drain_ns = start_ns + slice_ns; drain_ns < last_ns + 2 * slice_ns;
       drain_ns += slice_ns) {
    for (size_t t = 0; t < threads.size(); ++t) {
      const int64_t reached_ns =
          drain_ns + static_cast<int64_t>(t) * 1_ms;  // this one's turn comes later
      for (; next[t] < events.size(); ++next[t]) {
        if (events[next[t]].thread != threads[t]) continue;
        if (events[next[t]].event.time_ns > reached_ns) break;
        assembler.push(threads[t], events[next[t]].event);
      }
    }
    assembler.drained(drain_ns);
  }
}

// Holds for every stream, whatever is in it.
inline void check_exact(const Outcome& outcome, int64_t begin_ns, int64_t end_ns) {
  int64_t at_ns = begin_ns;
  int64_t index = 0;
  for (const Step& step : outcome.steps) {
    CHECK(step.begin_ns >= at_ns);  // equal, but after a flush in the middle
    CHECK(step.index == index++);
    at_ns = step.end_ns;
    CHECK(step.wall_ns() >= 0);
    CHECK(step.phases.total() == step.wall_ns());
    for (size_t i = 0; i < kPhaseCount; ++i) {
      CHECK(step.phases.ns[i] >= 0);
      CHECK(step.earlier.ns[i] >= 0);
      CHECK(step.earlier.ns[i] <= step.phases.ns[i]);
    }
    CHECK(step.operator_ns >= 0);
    CHECK(step.python_gap_ns >= 0);
    CHECK(step.user_python_ns <= step.python_gap_ns);
    CHECK(step.operator_ns + step.python_gap_ns <= step.wall_ns());
  }
  at_ns = begin_ns;
  for (const EpochTurn& turn : outcome.turns) {
    CHECK(turn.begin_ns == at_ns);
    CHECK(turn.end_ns >= turn.begin_ns);
    at_ns = turn.end_ns;
    int64_t sum_ns = turn.tail.total();
    int64_t steps = 0;
    for (const Step& step : outcome.steps) {
      if (step.epoch != turn.epoch) continue;
      sum_ns += step.phases.total() - step.earlier.total();
      ++steps;
    }
    CHECK(sum_ns == turn.wall_ns());
    CHECK(steps == turn.steps);
  }
  CHECK(at_ns == end_ns);
}

inline Outcome assemble(const Stream& stream) {
  Outcome outcome;
  StepAssembler assembler([&](const Step& s) { outcome.steps.push_back(s); },
                          [&](const EpochTurn& t) { outcome.turns.push_back(t); },
                          stream.start_ns());
  feed(assembler, stream.events(), stream.start_ns());
  assembler.flush(stream.now_ns());
  check_exact(outcome, stream.start_ns(), stream.now_ns());
  for (size_t i = 1; i < outcome.steps.size(); ++i) {
    CHECK(outcome.steps[i].begin_ns == outcome.steps[i - 1].end_ns);
  }
  return outcome;
}

}  // namespace gpuutil::test
