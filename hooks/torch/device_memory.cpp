#include "device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>

namespace gpuutil::torch_hooks {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

const Stat& total(const StatArray& stats) {
  return stats[static_cast<size_t>(StatType::AGGREGATE)];
}

}  // namespace

std::optional<int> device_type_of(const char* name) noexcept {
  try {
    return static_cast<int>(c10::Device(name).type());
  } catch (...) {
    return std::nullopt;
  }
}

std::optional<DeviceMemory> read_device_memory(int device_type, int index) noexcept {
  try {
    // c10::getDeviceAllocator() asserts where there is none; the cast only says so.
    auto* allocator = dynamic_cast<c10::DeviceAllocator*>(
        c10::GetAllocator(static_cast<c10::DeviceType>(device_type)));
    if (allocator == nullptr || !allocator->initialized()) return std::nullopt;
    const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(index));
    DeviceMemory memory{};
    memory.allocated_bytes = total(stats.allocated_bytes).current;
    memory.allocated_peak_bytes = total(stats.allocated_bytes).peak;
    memory.reserved_bytes = total(stats.reserved_bytes).current;
    memory.reserved_peak_bytes = total(stats.reserved_bytes).peak;
    memory.active_bytes = total(stats.active_bytes).current;
    memory.requested_bytes = total(stats.requested_bytes).current;
    memory.inactive_split_bytes = total(stats.inactive_split_bytes).current;
    memory.segments = total(stats.segment).current;
    memory.alloc_retries = stats.num_alloc_retries;
    memory.out_of_memory = stats.num_ooms;
    memory.device_allocs = stats.num_device_alloc;
    memory.device_frees = stats.num_device_free;
    return memory;
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace gpuutil::torch_hooks
