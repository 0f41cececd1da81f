#include "collect/memory_budget.h"

#include <cerrno>
#include <optional>
#include <system_error>

#include "collect/text.h"

namespace gpuutil {
namespace {

Reading<int64_t> kib_line(std::string_view text, std::string_view key) {
  const std::optional<int64_t> kib = number_of(text, key);
  if (!kib) return Unknown{ReadState::absent, "/proc/meminfo: no line " + std::string(key)};
  return *kib * 1024;
}

}  // namespace

MemoryBudget read_memory_budget(FileReader& reader, const CgroupLocations& locations) {
  MemoryBudget budget;
  const Reading<std::string_view> text = reader.read("/proc/meminfo");
  budget.machine_available_bytes = text ? kib_line(*text, "MemAvailable") : text.unknown();
  budget.machine_total_bytes = text ? kib_line(*text, "MemTotal") : text.unknown();
  budget.available_bytes = budget.machine_available_bytes;
  budget.source = "MemAvailable";
  if (!budget.available_bytes) budget.reason = budget.available_bytes.reason;

  budget.cgroup = read_cgroup_memory(reader, locations.memory);
  if (budget.cgroup.gap) {
    if (!budget.reason.empty()) budget.reason += "; ";
    budget.reason += budget.cgroup.gap.reason;
  }
  const MemoryLimit* limit = budget.cgroup.tightest();
  if (limit && (!budget.available_bytes || limit->headroom_bytes() < *budget.available_bytes)) {
    budget.available_bytes = limit->headroom_bytes();
    budget.source = "cgroup limit at " + limit->level;
  }
  if (!budget.available_bytes) budget.source.clear();
  return budget;
}

Reading<ShmSpace> read_shm_space(FileReader& reader, const StatFilesystem& stat_filesystem) {
  constexpr std::string_view kPath = "/dev/shm";
  struct statvfs space{};
  if (stat_filesystem(reader.locate(kPath), &space) != 0) {
    const int error = errno;
    return Unknown{error == ENOENT ? ReadState::absent : ReadState::unreadable,
                   std::string(kPath) + ": " + std::generic_category().message(error)};
  }
  const auto block = static_cast<int64_t>(space.f_frsize);
  return ShmSpace{static_cast<int64_t>(space.f_blocks) * block,
                  static_cast<int64_t>(space.f_bavail) * block};
}

}  // namespace gpuutil
