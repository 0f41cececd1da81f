// The one record that hooks write: 32 bytes, trivially copyable, into the ring of the thread that saw it.
// "Complete" kinds are written once, at their end, with their duration in `value`.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gpuutil {

enum class EventKind : uint16_t {
  none = 0,
  // Always on (H1).
  iter_begin,      // DataLoader.__iter__ entered; subject = loader
  iter_end,        // ... returned
  fetch_begin,     // iterator.__next__ entered; subject = loader
  fetch_end,       // ... returned; flags: kFetch*; value = samples in the batch, 0 where unknown
  optimizer_end,   // Optimizer.step returned; subject = optimizer
  user_step,       // mon.step()
  user_epoch,      // mon.epoch(n); value = n
  span_begin,      // a phase said explicitly (checkpoint, evaluation, gpuutil, ...); subject = Phase
  span_end,        // ... its end; spans nest
  // Sampled steps only (H2).
  sampling_begin,  // the operator observer is in place from here on
  sampling_end,    // ... was removed
  fetch_cpu,       // value = CPU ns that the thread used inside the fetch just ended; subject = loader
  op,              // complete; an operator called from outside any other one, not in backward
  backward_node,   // complete; one autograd node, on whichever thread ran it
  optimizer_begin, // Optimizer.step entered (closures run inside)
  zero_grad,       // complete
  sync,            // complete; a host sync (.item(), bool(tensor), nonzero), at any depth
  copy_to_device,  // complete; a host to device copy
  range,           // complete; a named range of DDP, FSDP, ...; subject = interned name
};

// flags of fetch_end
inline constexpr uint16_t kFetchBatch = 1;      // a batch was handed over
inline constexpr uint16_t kFetchExhausted = 2;  // StopIteration
inline constexpr uint16_t kFetchError = 4;      // another exception
inline constexpr uint16_t kFetchNoGrad = 8;     // gradients were off when the fetch ended
inline constexpr uint16_t kFetchFirst = 16;     // first fetch of its iterator

struct Event {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  int64_t value = 0;
  uint32_t subject = 0;
  EventKind kind = EventKind::none;
  uint16_t flags = 0;
  uint64_t extra = 0;   // free for the kind; 0 where it has no meaning
};
static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) == 32);

}  // namespace gpuutil
