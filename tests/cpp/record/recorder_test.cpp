#include "record/recorder.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

namespace gpuutil {
namespace {

Event event(int64_t value) { return {.value = value, .kind = EventKind::user_step}; }

std::vector<int64_t> drained(RecorderRegistry& registry) {
  std::vector<int64_t> values;
  const size_t count = registry.drain(
      [&](const Recorder&, const Event& seen) { values.push_back(seen.value); });
  CHECK(count == values.size());
  return values;
}

// Runs fn in a thread of its own until the kernel, too, has forgotten it: join() may return before.
template <class Fn>
void in_thread(Fn&& fn) {
  int32_t thread_id = 0;
  std::thread([&] {
    thread_id = static_cast<int32_t>(syscall(SYS_gettid));
    fn();
  }).join();
  while (RecorderRegistry::thread_alive(thread_id)) std::this_thread::yield();
}

bool nobody_dies(int32_t) noexcept { return true; }

// The registry is large; a test keeps it off the stack.
std::unique_ptr<RecorderRegistry> make_registry() { return std::make_unique<RecorderRegistry>(); }

TEST_CASE("events come out once, in order, with the thread that wrote them") {
  const auto registry = make_registry();
  for (int64_t i = 0; i < 3; ++i) CHECK(registry->emit(event(i)));
  int32_t other_id = 0;
  in_thread([&] {
    registry->emit(event(100));
    other_id = registry->this_thread()->thread_id();
  });
  std::vector<int64_t> mine;
  std::vector<int64_t> others;
  registry->drain([&](const Recorder& recorder, const Event& seen) {
    CHECK(seen.kind == EventKind::user_step);
    if (recorder.is_main_thread()) {
      CHECK(recorder.thread_id() == getpid());
      mine.push_back(seen.value);
    } else {
      CHECK(recorder.thread_id() == other_id);
      others.push_back(seen.value);
    }
  });
  CHECK(other_id != getpid());
  CHECK(mine == std::vector<int64_t>{0, 1, 2});
  CHECK(others == std::vector<int64_t>{100});
  CHECK(drained(*registry).empty());
}

TEST_CASE("a thread counts as alive until it has ended") {
  CHECK(RecorderRegistry::thread_alive(getpid()));
  int32_t ended = 0;
  in_thread([&] {
    ended = static_cast<int32_t>(syscall(SYS_gettid));
    CHECK(RecorderRegistry::thread_alive(ended));
  });
  CHECK_FALSE(RecorderRegistry::thread_alive(ended));
}

TEST_CASE("a thread keeps its recorder") {
  const auto registry = make_registry();
  Recorder* const first = registry->this_thread();
  CHECK(registry->this_thread() == first);
  in_thread([&] { CHECK(registry->this_thread() != first); });
  CHECK(registry->recorder_count() == 2);
}

TEST_CASE("a full ring loses the newest events and says how many") {
  const auto registry = make_registry();
  for (size_t i = 0; i < Recorder::kCapacity; ++i) REQUIRE(registry->emit(event(1)));
  CHECK_FALSE(registry->emit(event(2)));
  CHECK_FALSE(registry->emit(event(2)));
  CHECK(registry->dropped() == 2);
  CHECK(drained(*registry).size() == Recorder::kCapacity);
  CHECK(registry->emit(event(3)));
}

TEST_CASE("a reset forgets events, threads and counts, and recording goes on") {
  const auto registry = make_registry();
  for (size_t i = 0; i < Recorder::kCapacity + 1; ++i) registry->emit(event(1));
  registry->reset();
  CHECK(registry->dropped() == 0);
  CHECK(drained(*registry).empty());
  CHECK(registry->emit(event(7)));
  CHECK(registry->dropped() == 0);
  CHECK(drained(*registry) == std::vector<int64_t>{7});
}

TEST_CASE("attaching again and again takes no more memory, for old threads and for new ones") {
  const auto registry = make_registry();
  for (int round = 0; round < 1000; ++round) {
    registry->reset();
    REQUIRE(registry->emit(event(round)));
    if (round % 20 == 0) in_thread([&] { REQUIRE(registry->emit(event(-1))); });
  }
  CHECK(registry->recorder_count() == 2);
}

TEST_CASE("the recorder of a dead thread goes to a new one, but not before its events were told") {
  const auto registry = make_registry();
  Recorder* first = nullptr;
  int32_t first_id = 0;
  in_thread([&] {
    registry->emit(event(1));
    first = registry->this_thread();
    first_id = first->thread_id();
  });
  in_thread([&] {
    registry->emit(event(2));
    CHECK(registry->this_thread() != first);
  });
  registry->drain([&](const Recorder& recorder, const Event& seen) {
    CHECK((recorder.thread_id() == first_id) == (seen.value == 1));
  });
  in_thread([&] {
    registry->emit(event(3));
    CHECK(registry->this_thread() == first);
    CHECK(first->thread_id() != first_id);
  });
  CHECK(registry->recorder_count() == 2);
  CHECK(drained(*registry) == std::vector<int64_t>{3});
}

TEST_CASE("beyond the limit a thread is refused and counted, and the others record on") {
  const auto registry = std::make_unique<RecorderRegistry>(nobody_dies);
  CHECK(registry->emit(event(0)));
  // Thread numbers rise, so each of these is a thread not seen before; none of them counts as dead.
  size_t refusals = 0;
  for (size_t i = 0; i < RecorderRegistry::kMaxRecorders + 4; ++i) {
    in_thread([&] {
      if (registry->this_thread() != nullptr) return;
      ++refusals;
      CHECK_FALSE(registry->emit(event(1)));
      CHECK_FALSE(registry->emit(event(1)));
    });
  }
  CHECK(registry->recorder_count() == RecorderRegistry::kMaxRecorders);
  CHECK(refusals == 5);
  CHECK(registry->refused_threads() == refusals);
  CHECK(registry->dropped() == 2 * refusals);
  CHECK(registry->emit(event(9)));
  CHECK(drained(*registry) == std::vector<int64_t>{0, 9});
  registry->reset();
  CHECK(registry->refused_threads() == 0);
}

TEST_CASE("a pointer left by a destroyed registry is not followed by the next one") {
  auto registry = make_registry();
  registry->emit(event(1));
  registry.reset();
  registry = make_registry();
  CHECK(registry->emit(event(2)));
  CHECK(drained(*registry) == std::vector<int64_t>{2});
}

TEST_CASE("two registries used in turn by one thread do not mix") {
  const auto one = make_registry();
  const auto two = make_registry();
  for (int64_t i = 0; i < 4; ++i) {
    one->emit(event(i));
    two->emit(event(10 + i));
  }
  CHECK(drained(*one) == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(drained(*two) == std::vector<int64_t>{10, 11, 12, 13});
  CHECK(one->recorder_count() == 1);
}

TEST_CASE("while threads come, write and go, every event is delivered or counted") {
  constexpr int kThreads = 60;
  constexpr int kEvents = 500;
  const auto registry = make_registry();
  std::atomic<bool> done{false};
  std::thread producers([&] {
    for (int i = 0; i < kThreads; ++i) {
      in_thread([&] {
        for (int j = 0; j < kEvents; ++j) registry->emit(event(j));
      });
    }
    done.store(true, std::memory_order_release);
  });
  size_t received = 0;
  uint64_t disordered = 0;
  int32_t last_thread = 0;
  int64_t last_value = -1;
  const auto take = [&](const Recorder& recorder, const Event& seen) {
    if (recorder.thread_id() == last_thread && seen.value != 0 && seen.value <= last_value) {
      ++disordered;
    }
    last_thread = recorder.thread_id();
    last_value = seen.value;
    ++received;
  };
  while (!done.load(std::memory_order_acquire)) {
    registry->drain(take);
    std::this_thread::yield();
  }
  registry->drain(take);
  producers.join();
  CHECK(disordered == 0);
  CHECK(received + registry->dropped() == size_t{kThreads} * kEvents);
}

TEST_CASE("hooks may emit while the registry is reset and drained") {
  const auto registry = make_registry();
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    while (!stop.load(std::memory_order_relaxed)) registry->emit(event(1));
  });
  size_t received = 0;
  for (int round = 0; round < 300 || received == 0; ++round) {
    received += drained(*registry).size();
    registry->reset();
    std::this_thread::yield();
  }
  stop.store(true, std::memory_order_relaxed);
  producer.join();
  CHECK(registry->recorder_count() == 1);
}

TEST_CASE("a forked child records nothing, and neither does its child; the parent goes on") {
  const auto registry = make_registry();
  registry->emit(event(1));
  Recorder* const mine = registry->this_thread();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // No doctest in here: the child reports through its exit status alone.
    int wrong = 0;
    if (!RecorderRegistry::inert()) wrong |= 1;
    if (registry->emit(event(2))) wrong |= 2;
    if (registry->this_thread() != nullptr) wrong |= 4;
    if (registry->drain([](const Recorder&, const Event&) {}) != 0) wrong |= 8;
    registry->reset();
    if (registry->dropped() != 0 || mine->dropped() != 0) wrong |= 16;
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(RecorderRegistry::inert() && !registry->emit(event(3)) ? 0 : 1);
    int status = 1;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) wrong |= 32;
    _exit(wrong);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_FALSE(RecorderRegistry::inert());
  CHECK(registry->emit(event(4)));
  CHECK(drained(*registry) == std::vector<int64_t>{1, 4});
}

}  // namespace
}  // namespace gpuutil
