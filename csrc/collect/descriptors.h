// Open file descriptors of our own process against its limit. A loader's batches cost descriptors:
// torch keeps one open for each tensor that a worker has handed over. Sampler thread.
#pragma once

#include <cstdint>
#include <optional>

#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

// No more are counted in one look: a folder of so many takes milliseconds to read.
inline constexpr size_t kMaxDescriptors = 65'536;

struct Descriptors {
  int64_t open = 0;  // the one with which they are counted included; at most kMaxDescriptors
  std::optional<int64_t> soft_limit;  // nothing: no limit
  std::optional<int64_t> hard_limit;
};

Reading<Descriptors> read_descriptors(FileReader& reader);

}  // namespace gpuutil
