// How much memory is left for us: host memory (the lesser of what the machine has and what the
// tightest cgroup limit above us leaves) and the shared memory file system, through which loader
// workers hand over batches.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>
#include <functional>
#include <string>

#include "collect/cgroup.h"
#include "collect/cgroup_path.h"
#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct MemoryBudget {
  Reading<int64_t> available_bytes;
  std::string source;  // "MemAvailable" or "cgroup limit at PATH"
  std::string reason;  // what could not be read and might leave less; else empty
  Reading<int64_t> machine_available_bytes;
  Reading<int64_t> machine_total_bytes;
  CgroupMemory cgroup;
};

struct ShmSpace {
  int64_t size_bytes = 0;
  int64_t free_bytes = 0;  // for us, without what is kept back for root
};

// As statvfs(2). Tests inject one: a fixture tree lies on some other file system.
using StatFilesystem = std::function<int(const char* path, struct statvfs* space)>;

MemoryBudget read_memory_budget(FileReader& reader, const CgroupLocations& locations);
Reading<ShmSpace> read_shm_space(FileReader& reader,
                                 const StatFilesystem& stat_filesystem = ::statvfs);

}  // namespace gpuutil
