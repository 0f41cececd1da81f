#include "engine/host_lines.h"

#include <cstdio>

#include "base/clock.h"
#include "collect/host_sampler.h"
#include "collect/memory_budget.h"

namespace gpuutil {
namespace {

std::string number(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g%s", value, unit);
  return text;
}

template <class T>
std::string described(const Reading<T>& reading, const char* known) {
  return reading || reading.state == ReadState::waiting ? known : "not known: " + reading.reason;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> host_lines(const std::string& root) {
  HostSampler sampler(HostSamplerOptions{.root = root});
  const HostSample sample = sampler.sample(now_ns(), {});
  std::vector<std::pair<std::string, std::string>> lines;
  const CpuBudget& budget = sample.cpu_budget;
  lines.emplace_back("CPU budget", budget.cores ? number(*budget.cores, " CPUs (") + budget.source + ")" +
                                                      (budget.reason.empty() ? "" : "; " + budget.reason)
                                                : "not known: " + budget.reason);
  const MemoryBudget& memory = sample.memory;
  lines.emplace_back("memory", memory.available_bytes
                                   ? number(static_cast<double>(*memory.available_bytes) / 1e9, " GB free (") +
                                         memory.source + ")"
                                   : "not known: " + memory.available_bytes.reason);
  FileReader reader(root);
  const auto shm = read_shm_space(reader);
  lines.emplace_back("shared memory", shm ? number(static_cast<double>(shm->free_bytes) / 1e9, " GB free")
                                          : "not known: " + shm.reason);
  lines.emplace_back("open files", sample.descriptors
                                       ? number(static_cast<double>(sample.descriptors->open), " of ") +
                                             (sample.descriptors->soft_limit
                                                  ? std::to_string(*sample.descriptors->soft_limit)
                                                  : std::string("any number"))
                                       : "not known: " + sample.descriptors.reason);
  lines.emplace_back("other programs' CPU use", described(sample.cpu.foreign, "can be told apart from ours"));
  lines.emplace_back("CPU throttling", described(sample.throttled_ratio, "can be read"));
  lines.emplace_back("run queue", described(sample.run_queue_wait_ratio, "can be read"));
  lines.emplace_back("CPU pressure", described(sample.machine_pressure.cpu, "can be read"));
  return lines;
}

}  // namespace gpuutil
