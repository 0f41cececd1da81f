#include "collect/affinity.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collect/process_times.h"
#include "collect/text.h"

namespace gpuutil {

void CpuSet::add(int32_t cpu) {
  if (cpu < 0 || cpu > kMaxCpu) return;
  const size_t word = static_cast<size_t>(cpu) / 64;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= uint64_t{1} << (static_cast<unsigned>(cpu) % 64);
}

bool CpuSet::contains(int32_t cpu) const {
  if (cpu < 0) return false;
  const size_t word = static_cast<size_t>(cpu) / 64;
  return word < words_.size() && ((words_[word] >> (static_cast<unsigned>(cpu) % 64)) & 1) != 0;
}

int32_t CpuSet::count() const {
  int32_t count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

CpuSet CpuSet::intersect(const CpuSet& other) const {
  CpuSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = words_[i] & other.words_[i];
  return both;
}

CpuSet CpuSet::unite(const CpuSet& other) const {
  CpuSet all = words_.size() >= other.words_.size() ? *this : other;
  const CpuSet& less = words_.size() >= other.words_.size() ? other : *this;
  for (size_t i = 0; i < less.words_.size(); ++i) all.words_[i] |= less.words_[i];
  return all;
}

std::string CpuSet::to_list() const {
  std::string list;
  const int32_t end = static_cast<int32_t>(words_.size() * 64);
  for (int32_t first = 0; first < end; ++first) {
    if (!contains(first)) continue;
    int32_t last = first;
    while (contains(last + 1)) ++last;
    if (!list.empty()) list += ',';
    list += std::to_string(first);
    if (last > first) list.append("-").append(std::to_string(last));
    first = last;
  }
  return list;
}

Reading<CpuSet> parse_cpu_list(std::string_view text) {
  const Unknown malformed{ReadState::malformed,
                          "not a list of CPUs: '" + std::string(text.substr(0, 64)) + "'"};
  CpuSet set;
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view range = next_until(text, ',');
    const bool single = range.find('-') == range.npos;
    const std::optional<int32_t> first = to_int<int32_t>(next_until(range, '-'));
    const std::optional<int32_t> last = single ? first : to_int<int32_t>(range);
    if (!first || !last || *first < 0 || *last < *first || *last > CpuSet::kMaxCpu) {
      return malformed;
    }
    for (int32_t cpu = *first; cpu <= *last; ++cpu) set.add(cpu);
  }
  return set;
}

Reading<CpuSet> read_online_cpus(FileReader& reader) {
  const Reading<std::string_view> text = reader.read("/sys/devices/system/cpu/online");
  return text ? parse_cpu_list(*text) : text.unknown();
}

Reading<CpuSet> allowed_cpus(const Reading<CpuSet>& online, const Reading<CpuSet>& cpuset) {
  if (!cpuset || cpuset->empty()) return online;
  if (!online) return cpuset;
  CpuSet both = cpuset->intersect(*online);
  if (both.empty()) return cpuset;  // numbered anew, see read_affinity
  return both;
}

Reading<CpuSet> read_affinity(FileReader& reader, int32_t pid) {
  const Reading<CpuSet> online = read_online_cpus(reader);
  return read_affinity(reader, pid, online);
}

Reading<CpuSet> read_affinity(FileReader& reader, int32_t pid, const Reading<CpuSet>& online) {
  const ProcPath path(pid, 0, "status");
  const Reading<std::string_view> text = reader.read(path);
  if (!text) return text.unknown();
  const std::optional<std::string_view> list = line_of(*text, "Cpus_allowed_list");
  if (!list) {
    return Unknown{ReadState::absent, std::string(path.view()) + ": no line Cpus_allowed_list"};
  }
  Reading<CpuSet> mask = parse_cpu_list(*list);
  if (!mask) return mask;
  if (!online) return mask;
  CpuSet usable = mask->intersect(*online);
  // Nothing in common: a container that shows CPUs numbered anew beside a mask with the host's
  // numbers.
  if (usable.empty()) return mask;
  return usable;
}

}  // namespace gpuutil
