// A lock-free queue of fixed capacity between one producer thread and one consumer thread. It does
// not block, grow or overwrite: what finds it full is dropped and counted. After fork() the child
// has a private copy that nobody drains; using it there is harmless.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

namespace gpuutil {

// Two 64-byte lines, because x86 prefetches lines in pairs.
inline constexpr size_t kCacheLineBytes = 128;

template <class T, size_t Capacity>
class SpscRing {
  static_assert(std::has_single_bit(Capacity), "the capacity must be a power of two");
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // The slots stay uninitialised: a ring that is never filled never touches its pages.
  SpscRing() noexcept {}
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  static constexpr size_t capacity() noexcept { return Capacity; }

  // Producer. False where the ring was full and `value` was dropped.
  bool push(const T& value) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - known_tail_.load(std::memory_order_relaxed) >= Capacity) {
      const uint64_t tail = tail_.load(std::memory_order_acquire);
      known_tail_.store(tail, std::memory_order_relaxed);
      if (head - tail >= Capacity) {
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return false;
      }
    }
    std::memcpy(slot(head), &value, sizeof(T));
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer. Calls fn(const T&) for what was there when the call began, oldest first, and returns
  // how many; a fast producer cannot keep the consumer here. A slot is given back after its fn,
  // also where fn throws, so nothing is delivered twice.
  template <class Fn>
  size_t drain(Fn&& fn) {
    const uint64_t begin = tail_.load(std::memory_order_relaxed);
    const uint64_t end = head_.load(std::memory_order_acquire);
    for (uint64_t at = begin; at != end; ++at) {
      const GiveBack give_back{tail_, at + 1};
      fn(*std::launder(reinterpret_cast<const T*>(slot(at))));
    }
    return static_cast<size_t>(end - begin);
  }

  // Any thread, a snapshot. The tail is read first: the head never falls behind it.
  size_t size() const noexcept {
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    return static_cast<size_t>(head_.load(std::memory_order_acquire) - tail);
  }
  bool empty() const noexcept { return size() == 0; }

  // Any thread. Values refused since construction or clear().
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  // Forgets contents and drops. Only while neither side is in push() or drain().
  void clear() noexcept {
    const uint64_t head = head_.load(std::memory_order_acquire);
    tail_.store(head, std::memory_order_release);
    known_tail_.store(head, std::memory_order_relaxed);
    dropped_.store(0, std::memory_order_relaxed);
  }

 private:
  struct GiveBack {
    std::atomic<uint64_t>& tail;
    uint64_t next;
    ~GiveBack() { tail.store(next, std::memory_order_release); }
  };

  std::byte* slot(uint64_t at) noexcept { return slots_ + (at & (Capacity - 1)) * sizeof(T); }

  // Indices count for ever and are masked on use. The producer's line: written by push() only. Its
  // last known tail saves a read of the consumer's line until the ring looks full. It and the drop
  // counter are atomic (and cost nothing for it) so that a ring may pass from a dead thread to a
  // new one.
  alignas(kCacheLineBytes) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> known_tail_{0};
  std::atomic<uint64_t> dropped_{0};
  // The consumer's line.
  alignas(kCacheLineBytes) std::atomic<uint64_t> tail_{0};
  alignas(kCacheLineBytes) std::byte slots_[Capacity * sizeof(T)];
  static_assert(alignof(T) <= kCacheLineBytes);
};

}  // namespace gpuutil
