#include "collect/proc_stat.h"

#include <algorithm>
#include <array>
#include <string>

#include "collect/text.h"

namespace gpuutil {
namespace {

// user nice system idle iowait irq softirq steal; the guest columns after them repeat parts of the
// first two.
constexpr size_t kColumns = 8;

std::optional<CpuTimes> parse_line(std::string_view line) {
  line.remove_prefix(3);
  CpuTimes times;
  const std::optional<int32_t> cpu = to_int<int32_t>(next_word(line));
  if (!cpu) return std::nullopt;
  std::array<int64_t, kColumns> column{};
  for (size_t i = 0; i < kColumns; ++i) {
    const std::optional<int64_t> number = next_int(line);
    if (number) column[i] = *number;
    // Kernels before 2.6.11 end before steal; fewer columns than the first four are no CPU line.
    if (!number && i < 4) return std::nullopt;
  }
  times.cpu = *cpu;
  times.interrupt = column[5] + column[6];
  times.busy = column[0] + column[1] + column[2] + times.interrupt;
  times.idle = column[3];
  times.iowait = column[4];
  times.steal = column[7];
  return times;
}

}  // namespace

Reading<ProcStat> parse_proc_stat(std::string_view text) {
  ProcStat stat;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    // The CPU lines come first; long interrupt tables follow.
    if (line.substr(0, 3) != "cpu") break;
    if (line.size() > 3 && line[3] == ' ') continue;  // the sum over CPUs
    const std::optional<CpuTimes> times = parse_line(line);
    if (!times) {
      return Unknown{ReadState::malformed, "/proc/stat: not a CPU line: " + std::string(line)};
    }
    stat.cpus.push_back(*times);
  }
  if (stat.cpus.empty()) return Unknown{ReadState::malformed, "/proc/stat: no CPU lines"};
  return stat;
}

Reading<ProcStat> read_proc_stat(FileReader& reader) {
  const Reading<std::string_view> text = reader.read("/proc/stat");
  return text ? parse_proc_stat(*text) : text.unknown();
}

Reading<CpuUse> cpu_use(const ProcStat& before, const ProcStat& after, const CpuSet& mask) {
  CpuUse use;
  int64_t steal = 0;
  for (const CpuTimes& now : after.cpus) {
    if (!mask.contains(now.cpu)) continue;
    const auto was = std::find_if(before.cpus.begin(), before.cpus.end(),
                                  [&](const CpuTimes& cpu) { return cpu.cpu == now.cpu; });
    if (was == before.cpus.end()) continue;
    const int64_t busy = now.busy - was->busy;
    if (busy < 0) {
      return Unknown{ReadState::inconsistent,
                     "/proc/stat: busy time of CPU " + std::to_string(now.cpu) + " went back"};
    }
    ++use.cpus;
    use.jiffies.busy += busy;
    use.jiffies.interrupt += now.interrupt - was->interrupt;
    // The kernel documents that idle and iowait may step back by a little; that is no time that
    // passed.
    use.jiffies.idle += std::max<int64_t>(0, now.idle - was->idle);
    use.jiffies.iowait += std::max<int64_t>(0, now.iowait - was->iowait);
    steal += now.steal - was->steal;
  }
  if (use.cpus == 0) {
    return Unknown{ReadState::inconsistent, "/proc/stat: counts none of the CPUs in our mask"};
  }
  if (use.jiffies.busy + use.jiffies.idle + use.jiffies.iowait + steal == 0) {
    return Unknown{ReadState::inconsistent, "/proc/stat: the counters stand still"};
  }
  if (steal >= 0) {
    use.steal = steal;
    use.jiffies.steal = steal;
  }
  return use;
}

}  // namespace gpuutil
