// Statistics of a device's caching allocator, read through the device-agnostic interface. Never
// starts a device context: an allocator that is not in use yet reads as absent. Any thread; takes
// the allocator's own lock.
#pragma once

#include <cstdint>
#include <optional>

namespace gpuutil::torch_hooks {

struct DeviceMemory {
  int64_t allocated_bytes;
  int64_t allocated_peak_bytes;
  int64_t reserved_bytes;
  int64_t reserved_peak_bytes;
  int64_t active_bytes;
  int64_t requested_bytes;
  int64_t inactive_split_bytes;  // free, but stuck inside segments that are in use
  int64_t segments;
  int64_t alloc_retries;  // allocations that had to flush the cache first
  int64_t out_of_memory;  // ... and failed all the same
  int64_t device_allocs;  // calls to the driver
  int64_t device_frees;
};

// The number of PyTorch's device type ("cuda", "xpu", ...), or nothing where PyTorch does not know
// the name.
std::optional<int> device_type_of(const char* name) noexcept;

// Nothing where this build of PyTorch has no caching allocator for that type, it is not
// initialised, or there is no such device.
std::optional<DeviceMemory> read_device_memory(int device_type, int index) noexcept;

}  // namespace gpuutil::torch_hooks
