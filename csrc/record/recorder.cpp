#include "record/recorder.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace gpuutil {

namespace {

uint64_t next_generation() noexcept {
  static constinit std::atomic<uint64_t> last{0};  // 0 itself means "never registered"
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

int32_t current_thread_id() noexcept { return static_cast<int32_t>(syscall(SYS_gettid)); }

}  // namespace

constinit std::atomic<bool> RecorderRegistry::inert_{false};
constinit thread_local RecorderRegistry::Mine RecorderRegistry::mine_{nullptr, 0};

bool RecorderRegistry::thread_alive(int32_t thread_id) noexcept {
  // Signal 0 asks without sending. Any error but "no such thread" leaves the thread its recorder.
  return syscall(SYS_tgkill, getpid(), thread_id, 0) == 0 || errno != ESRCH;
}

RecorderRegistry::RecorderRegistry(ThreadAlive alive)
    : alive_(alive), generation_(next_generation()) {
  static constinit std::atomic<bool> installed{false};
  if (installed.exchange(true)) return;
  const int error = pthread_atfork(
      nullptr, nullptr, [] { inert_.store(true, std::memory_order_relaxed); });
  if (error != 0) {
    installed.store(false);
    throw std::system_error(error, std::generic_category(), "pthread_atfork");
  }
}

Recorder* RecorderRegistry::register_this_thread() noexcept {
  const std::lock_guard lock(mutex_);
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  const int32_t thread_id = current_thread_id();
  Recorder* recorder = find_recorder(thread_id, generation);
  if (recorder == nullptr) {
    refused_threads_.fetch_add(1, std::memory_order_relaxed);
  } else {
    // What an earlier generation left in the ring is dropped here and not in reset(): there its
    // thread might just be pushing. Nobody drains it before the generation below says so.
    const bool current = recorder->generation_.load(std::memory_order_relaxed) == generation;
    if (!current) recorder->ring_.clear();
    recorder->thread_id_.store(thread_id, std::memory_order_relaxed);
    recorder->is_main_thread_.store(thread_id == getpid(), std::memory_order_relaxed);
    recorder->generation_.store(generation, std::memory_order_release);
  }
  mine_ = {recorder, generation};
  return recorder;
}

// In this order: the one that this thread had before, one whose thread is gone, a new one. A dead
// thread's is taken in the same generation only once drained, so that its events are still told
// under its own id.
Recorder* RecorderRegistry::find_recorder(int32_t thread_id, uint64_t generation) noexcept {
  const size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    if (recorders_[i]->thread_id() == thread_id) return recorders_[i].get();
  }
  for (size_t i = 0; i < count; ++i) {
    Recorder& recorder = *recorders_[i];
    const bool current = recorder.generation_.load(std::memory_order_relaxed) == generation;
    if (current && !recorder.ring_.empty()) continue;
    if (!alive_(recorder.thread_id())) return &recorder;
  }
  if (count == kMaxRecorders) return nullptr;
  recorders_[count].reset(new (std::nothrow) Recorder);
  if (recorders_[count] == nullptr) return nullptr;
  count_.store(count + 1, std::memory_order_release);
  return recorders_[count].get();
}

void RecorderRegistry::reset() noexcept {
  if (inert()) return;
  const std::lock_guard lock(mutex_);
  generation_.store(next_generation(), std::memory_order_release);
  refused_events_.store(0, std::memory_order_relaxed);
  refused_threads_.store(0, std::memory_order_relaxed);
}

uint64_t RecorderRegistry::dropped() const noexcept {
  uint64_t dropped = refused_events_.load(std::memory_order_relaxed);
  for_each_current([&](const Recorder& recorder) { dropped += recorder.dropped(); });
  return dropped;
}

uint64_t RecorderRegistry::refused_threads() const noexcept {
  return refused_threads_.load(std::memory_order_relaxed);
}

size_t RecorderRegistry::recorder_count() const noexcept {
  return count_.load(std::memory_order_relaxed);
}

}  // namespace gpuutil
