// Who writes events where: one ring for each thread, found through a thread_local pointer. Hooks
// call emit() on any thread: a lock once a thread, afterwards lock-free and without allocation. One
// engine thread calls drain(). Nothing here looks into events. In a forked child all of it is a
// no-op.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/ring.h"
#include "record/event.h"

namespace gpuutil {

// The ring of one thread at a time. Made and kept by a RecorderRegistry.
class Recorder {
 public:
  static constexpr size_t kCapacity = 8192;  // 256 KiB, touched only as far as it fills

  // Only the thread that owns it. False where the ring was full.
  bool push(const Event& event) noexcept { return ring_.push(event); }

  int32_t thread_id() const noexcept { return thread_id_.load(std::memory_order_relaxed); }
  bool is_main_thread() const noexcept { return is_main_thread_.load(std::memory_order_relaxed); }
  uint64_t dropped() const noexcept { return ring_.dropped(); }

 private:
  friend class RecorderRegistry;

  SpscRing<Event, kCapacity> ring_;
  std::atomic<uint64_t> generation_{0};  // of the registry when its thread registered
  std::atomic<int32_t> thread_id_{0};
  std::atomic<bool> is_main_thread_{false};
};

class RecorderRegistry {
 public:
  static constexpr size_t kMaxRecorders = 256;

  // Whether a thread of this process still exists. Injected by tests.
  using ThreadAlive = bool (*)(int32_t thread_id) noexcept;
  static bool thread_alive(int32_t thread_id) noexcept;

  // Installs the fork handler on first use in the process, hence eagerly, at attach. Throws
  // std::system_error where that fails.
  explicit RecorderRegistry(ThreadAlive alive = thread_alive);
  // Only once no thread can be inside a call. The engine's registry is never destroyed.
  ~RecorderRegistry() = default;
  RecorderRegistry(const RecorderRegistry&) = delete;
  RecorderRegistry& operator=(const RecorderRegistry&) = delete;

  // True in a child forked after the first registry was made, for good.
  static bool inert() noexcept { return inert_.load(std::memory_order_relaxed); }

  // Ends that in a child which wants to record for itself. Before anything else of ours runs there, on its only thread;
  // registries from before the fork are not to be used any more.
  static void revive() noexcept { inert_.store(false, std::memory_order_relaxed); }

  // Any thread. False where the event was lost: counted, except in a forked child.
  bool emit(const Event& event) noexcept {
    if (inert()) return false;
    if (Recorder* recorder = this_thread()) return recorder->push(event);
    refused_events_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // The recorder of the calling thread; nullptr where there was none left, and in a forked child.
  // Ask again for each event instead of keeping it: reset() gives it a new meaning.
  Recorder* this_thread() noexcept {
    if (inert()) return nullptr;
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    return mine_.generation == generation ? mine_.recorder : register_this_thread();
  }

  // Engine thread. Calls fn(const Recorder&, const Event&), in order within a recorder, recorder by
  // recorder, for what was there when the turn of each came. No lock is held. Returns the number of
  // events.
  template <class Fn>
  size_t drain(Fn&& fn) {
    if (inert()) return 0;
    size_t drained = 0;
    for_each_current([&](Recorder& recorder) {
      drained += recorder.ring_.drain(
          [&](const Event& event) { fn(std::as_const(recorder), event); });
    });
    return drained;
  }

  // Forgets all events, threads and counts, in constant time; every thread registers anew at its
  // next event. Hooks may go on emitting; drain() must not be running. Keeps the memory for reuse:
  // at most kMaxRecorders recorders exist however often this is called.
  void reset() noexcept;

  // Any thread. Since construction or reset().
  uint64_t dropped() const noexcept;          // events lost to full rings and on refused threads
  uint64_t refused_threads() const noexcept;  // threads that found no recorder left
  size_t recorder_count() const noexcept;     // recorders in memory, idle ones included

 private:
  // Trivial, so that neither its first use nor a thread's end runs code of ours.
  struct Mine {
    Recorder* recorder;
    uint64_t generation;
  };

  template <class Fn>
  void for_each_current(Fn&& fn) const {
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      Recorder& recorder = *recorders_[i];
      if (recorder.generation_.load(std::memory_order_acquire) == generation) fn(recorder);
    }
  }

  Recorder* register_this_thread() noexcept;
  Recorder* find_recorder(int32_t thread_id, uint64_t generation) noexcept;

  static constinit std::atomic<bool> inert_;
  static constinit thread_local Mine mine_;

  const ThreadAlive alive_;
  // No two registries, nor one before and after a reset(), share a number, so a thread_local
  // pointer left by another is never followed.
  std::atomic<uint64_t> generation_;
  std::atomic<uint64_t> refused_events_{0};
  std::atomic<uint64_t> refused_threads_{0};
  std::mutex mutex_;  // registration and reset
  std::array<std::unique_ptr<Recorder>, kMaxRecorders> recorders_;  // [0, count_) are set, for good
  std::atomic<size_t> count_{0};
};

}  // namespace gpuutil
