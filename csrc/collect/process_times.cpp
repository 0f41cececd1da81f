#include "collect/process_times.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "collect/text.h"

namespace gpuutil {
namespace {

Unknown malformed(std::string_view path) {
  return {ReadState::malformed, std::string(path) + ": not in the expected form"};
}

}  // namespace

ProcPath::ProcPath(int32_t pid, int32_t tid, std::string_view file) {
  std::array<char, 16> process{"self"};
  if (pid != 0) std::snprintf(process.data(), process.size(), "%d", pid);
  const int file_size = static_cast<int>(file.size());
  const int size = tid == 0 ? std::snprintf(text_, sizeof text_, "/proc/%s/%.*s", process.data(),
                                            file_size, file.data())
                            : std::snprintf(text_, sizeof text_, "/proc/%s/task/%d/%.*s",
                                            process.data(), tid, file_size, file.data());
  size_ = std::min(static_cast<size_t>(std::max(size, 0)), sizeof text_ - 1);
}

Reading<ProcessStat> parse_process_stat(std::string_view text) {
  const Unknown wrong{ReadState::malformed, "process stat line: not in the expected form"};
  // The name may hold spaces, parentheses and line ends: it stretches from the first '(' to the
  // last ')'.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return wrong;
  ProcessStat stat;
  const std::optional<int32_t> pid = to_int<int32_t>(trimmed(text.substr(0, open)));
  stat.name = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  const std::string_view state = next_word(rest);
  // Fields 4 (parent) to 22 (start time), numbered as in the kernel's documentation.
  std::array<int64_t, 23> field{};
  for (size_t i = 4; i <= 22; ++i) {
    const std::optional<int64_t> number = next_int(rest);
    if (!number) return wrong;
    field[i] = *number;
  }
  if (!pid || state.size() != 1) return wrong;
  stat.pid = *pid;
  stat.state = state[0];
  stat.parent_pid = static_cast<int32_t>(field[4]);
  stat.cpu_jiffies = field[14] + field[15];
  stat.reaped_jiffies = field[16] + field[17];
  stat.threads = static_cast<int32_t>(field[20]);
  stat.start_jiffies = field[22];
  return stat;
}

Reading<ProcessStat> read_process_stat(FileReader& reader, int32_t pid, int32_t tid) {
  const Reading<std::string_view> text = reader.read(ProcPath(pid, tid, "stat"));
  return text ? parse_process_stat(*text) : text.unknown();
}

Reading<int64_t> read_rss_bytes(FileReader& reader, int32_t pid) {
  const ProcPath path(pid, 0, "statm");
  const Reading<std::string_view> text = reader.read(path);
  if (!text) return text.unknown();
  std::string_view rest = *text;
  next_word(rest);  // virtual size
  const std::optional<int64_t> pages = next_int(rest);
  if (!pages) return malformed(path);
  return *pages * int64_t{sysconf(_SC_PAGESIZE)};
}

Reading<Switches> read_switches(FileReader& reader, int32_t pid, int32_t tid) {
  const ProcPath path(pid, tid, "status");
  const Reading<std::string_view> text = reader.read(path);
  if (!text) return text.unknown();
  const std::optional<int64_t> voluntary = number_of(*text, "voluntary_ctxt_switches");
  const std::optional<int64_t> involuntary = number_of(*text, "nonvoluntary_ctxt_switches");
  if (!voluntary || !involuntary) return malformed(path);
  return Switches{*voluntary, *involuntary};
}

Reading<RunQueue> read_run_queue(FileReader& reader, int32_t pid, int32_t tid) {
  const ProcPath path(pid, tid, "schedstat");
  const Reading<std::string_view> text = reader.read(path);
  if (!text) return text.unknown();
  std::string_view rest = *text;
  const std::optional<int64_t> run = next_int(rest);
  const std::optional<int64_t> wait = next_int(rest);
  const std::optional<int64_t> slices = next_int(rest);
  if (!run || !wait || !slices) return malformed(path);
  return RunQueue{*run, *wait, *slices};
}

Reading<bool> list_threads(FileReader& reader, int32_t pid, std::vector<int32_t>& tids,
                           size_t limit) {
  return reader.list_numbers(ProcPath(pid, 0, "task"), tids, limit);
}

std::vector<ThreadQueue> read_thread_queues(FileReader& reader, int32_t pid,
                                            const std::vector<int32_t>& tids) {
  std::vector<ThreadQueue> queues;
  queues.reserve(tids.size());
  for (const int32_t tid : tids) {
    if (const Reading<RunQueue> queue = read_run_queue(reader, pid, tid)) {
      queues.push_back({tid, *queue});
    }
  }
  return queues;
}

Reading<double> run_queue_wait_ratio(const std::vector<ThreadQueue>& before,
                                     const std::vector<ThreadQueue>& after) {
  int64_t run_ns = 0;
  int64_t wait_ns = 0;
  bool any = false;
  for (const ThreadQueue& now : after) {
    const auto was = std::find_if(before.begin(), before.end(),
                                  [&](const ThreadQueue& thread) { return thread.tid == now.tid; });
    if (was == before.end()) continue;
    const int64_t ran = now.queue.run_ns - was->queue.run_ns;
    const int64_t waited = now.queue.wait_ns - was->queue.wait_ns;
    if (ran < 0 || waited < 0) continue;  // another thread under the same id
    any = true;
    run_ns += ran;
    wait_ns += waited;
  }
  if (!any) return Unknown{ReadState::absent, "schedstat: no thread was read twice"};
  if (run_ns + wait_ns == 0) return Unknown{ReadState::absent, "no thread could run in between"};
  return static_cast<double>(wait_ns) / static_cast<double>(run_ns + wait_ns);
}

}  // namespace gpuutil
