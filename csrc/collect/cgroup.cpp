#include "collect/cgroup.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collect/text.h"

namespace gpuutil {
namespace {

// v1 writes 'no limit' as the largest multiple of the page size that fits.
constexpr int64_t kNoLimitBytes = int64_t{1} << 60;
constexpr int64_t kDefaultPeriodUs = 100'000;

// A limit that may not be set: "max", -1, no such file at this level.
template <class T>
using Limit = Reading<std::optional<T>>;

Limit<int64_t> read_limit(FileReader& reader, const std::string& path) {
  const Reading<std::string_view> text = reader.read(path);
  if (!text && text.state == ReadState::absent) return std::optional<int64_t>();
  if (!text) return text.unknown();
  const std::string_view word = trimmed(*text);
  if (word == "max") return std::optional<int64_t>();
  const std::optional<int64_t> number = to_int(word);
  if (!number) return Unknown{ReadState::malformed, path + ": not a number"};
  return number;
}

Limit<double> quota_cores(std::optional<int64_t> quota_us, int64_t period_us,
                          const std::string& path) {
  if (!quota_us || *quota_us <= 0 || period_us <= 0) {
    return Unknown{ReadState::malformed, path + ": not a quota and a period"};
  }
  return std::optional(static_cast<double>(*quota_us) / static_cast<double>(period_us));
}

Limit<double> read_quota_v2(FileReader& reader, const std::string& folder) {
  const std::string path = folder + "/cpu.max";
  const Reading<std::string_view> text = reader.read(path);
  if (!text && text.state == ReadState::absent) return std::optional<double>();
  if (!text) return text.unknown();
  std::string_view rest = *text;
  const std::string_view quota = next_word(rest);
  if (quota == "max") return std::optional<double>();
  return quota_cores(to_int(quota), next_int(rest).value_or(kDefaultPeriodUs), path);
}

Limit<double> read_quota_v1(FileReader& reader, const std::string& folder) {
  const std::string path = folder + "/cpu.cfs_quota_us";
  const Limit<int64_t> quota = read_limit(reader, path);
  if (!quota) return quota.unknown();
  if (quota->value_or(-1) == -1) return std::optional<double>();
  const Limit<int64_t> period = read_limit(reader, folder + "/cpu.cfs_period_us");
  if (!period) return period.unknown();
  return quota_cores(*quota, period->value_or(kDefaultPeriodUs), path);
}

Reading<Throttling> read_throttling(FileReader& reader, const std::string& folder, int version) {
  const std::string path = folder + "/cpu.stat";
  const Reading<std::string_view> text = reader.read(path);
  if (!text) return text.unknown();
  const std::optional<int64_t> periods = number_of(*text, "nr_periods");
  const std::optional<int64_t> throttled = number_of(*text, "nr_throttled");
  const std::optional<int64_t> time =
      number_of(*text, version == 2 ? "throttled_usec" : "throttled_time");
  if (!periods || !throttled || !time) {
    return Unknown{ReadState::malformed, path + ": no counts of throttled periods"};
  }
  return Throttling{*periods, *throttled, version == 2 ? *time * 1000 : *time};
}

// What a location that is missing or incomplete means for the limits read through it.
Gap gap_of(const Reading<CgroupLocation>& location) {
  Gap gap;
  if (!location) {
    gap.note(location.unknown());
  } else if (!location->note.empty()) {
    gap.note({ReadState::absent, location->note});
  }
  return gap;
}

// v1 tells the tightest memory limit of all levels, those above the mount included.
void add_hidden_limit(FileReader& reader, const std::string& top, CgroupMemory& memory) {
  const Reading<std::string_view> stat = reader.read(top + "/memory.stat");
  if (!stat) return;
  const std::optional<int64_t> limit = number_of(*stat, "hierarchical_memory_limit");
  if (!limit || *limit >= kNoLimitBytes) return;
  for (const MemoryLimit& known : memory.limits) {
    if (known.limit_bytes <= *limit) return;
  }
  const int64_t reclaimable = number_of(*stat, "total_inactive_file").value_or(0);
  const Limit<int64_t> used = read_limit(reader, top + "/memory.usage_in_bytes");
  // Of what is used up there we see our own part alone, so the headroom is at most this.
  if (used && *used) memory.limits.push_back({*limit, **used, reclaimable, "above " + top});
}

Reading<MemoryLimit> read_memory_use(FileReader& reader, const std::string& level, bool v2) {
  MemoryLimit limit;
  limit.level = level;
  const std::string path = level + (v2 ? "/memory.current" : "/memory.usage_in_bytes");
  const Limit<int64_t> used = read_limit(reader, path);
  if (!used) return used.unknown();
  if (!*used) return Unknown{ReadState::absent, path + ": a limit without a count of use"};
  limit.used_bytes = **used;
  if (const Reading<std::string_view> stat = reader.read(level + "/memory.stat")) {
    limit.reclaimable_bytes =
        number_of(*stat, v2 ? "inactive_file" : "total_inactive_file").value_or(0);
  }
  return limit;
}

}  // namespace

const CpuQuota* CgroupCpu::tightest() const {
  const auto least =
      std::min_element(quotas.begin(), quotas.end(),
                       [](const CpuQuota& a, const CpuQuota& b) { return a.cores < b.cores; });
  return least == quotas.end() ? nullptr : &*least;
}

int64_t MemoryLimit::headroom_bytes() const {
  return std::max<int64_t>(0, limit_bytes - std::max<int64_t>(0, used_bytes - reclaimable_bytes));
}

const MemoryLimit* CgroupMemory::tightest() const {
  const auto least = std::min_element(limits.begin(), limits.end(),
                                      [](const MemoryLimit& a, const MemoryLimit& b) {
                                        return a.headroom_bytes() < b.headroom_bytes();
                                      });
  return least == limits.end() ? nullptr : &*least;
}

CgroupCpu read_cgroup_cpu(FileReader& reader, const Reading<CgroupLocation>& location) {
  CgroupCpu cpu;
  cpu.gap = gap_of(location);
  if (!location) return cpu;
  cpu.version = location->version;
  for (const std::string& level : location->levels) {
    const Limit<double> quota =
        cpu.version == 2 ? read_quota_v2(reader, level) : read_quota_v1(reader, level);
    if (!quota) {
      cpu.gap.note(quota.unknown());
    } else if (*quota) {
      cpu.quotas.push_back({**quota, level, read_throttling(reader, level, cpu.version)});
    }
  }
  return cpu;
}

CgroupMemory read_cgroup_memory(FileReader& reader, const Reading<CgroupLocation>& location) {
  CgroupMemory memory;
  memory.gap = gap_of(location);
  if (!location) return memory;
  const bool v2 = location->version == 2;
  for (const std::string& level : location->levels) {
    const Limit<int64_t> limit =
        read_limit(reader, level + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    if (!limit) memory.gap.note(limit.unknown());
    if (!limit || limit->value_or(kNoLimitBytes) >= kNoLimitBytes) continue;
    Reading<MemoryLimit> use = read_memory_use(reader, level, v2);
    if (!use) {
      memory.gap.note(use.unknown());
      continue;
    }
    use.value->limit_bytes = **limit;
    memory.limits.push_back(std::move(*use.value));
  }
  if (!v2 && !location->levels.empty()) add_hidden_limit(reader, location->levels.back(), memory);
  return memory;
}

Reading<CpuSet> read_cgroup_cpuset(FileReader& reader, const Reading<CgroupLocation>& location) {
  if (!location) return location.unknown();
  const std::vector<std::string_view> files =
      location->version == 2
          ? std::vector<std::string_view>{"/cpuset.cpus.effective"}
          : std::vector<std::string_view>{"/cpuset.effective_cpus", "/cpuset.cpus"};
  for (const std::string& level : location->levels) {
    for (const std::string_view file : files) {
      const Reading<std::string_view> text = reader.read(level + std::string(file));
      if (!text && text.state != ReadState::absent) return text.unknown();
      if (text && !trimmed(*text).empty()) return parse_cpu_list(*text);
    }
  }
  return Unknown{ReadState::absent, "no cgroup level has a CPU set"};
}

Reading<double> throttled_ratio(const CgroupCpu& before, const CgroupCpu& after) {
  double highest = 0;
  for (const CpuQuota& now : after.quotas) {
    if (!now.throttling) return now.throttling.unknown();
    const auto was = std::find_if(before.quotas.begin(), before.quotas.end(),
                                  [&](const CpuQuota& quota) { return quota.level == now.level; });
    if (was == before.quotas.end() || !was->throttling) {
      return Unknown{ReadState::waiting, now.level + ": one reading so far"};
    }
    const int64_t periods = now.throttling->periods - was->throttling->periods;
    const int64_t throttled = now.throttling->throttled - was->throttling->throttled;
    if (periods < 0 || throttled < 0) {
      return Unknown{ReadState::inconsistent, now.level + ": counts of periods went back"};
    }
    if (periods == 0) continue;
    highest = std::max(
        highest, std::min(1.0, static_cast<double>(throttled) / static_cast<double>(periods)));
  }
  if (highest == 0 && after.gap) return after.gap.unknown();
  return highest;
}

}  // namespace gpuutil
