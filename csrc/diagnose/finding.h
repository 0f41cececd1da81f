// One cause, with its evidence and what removing it would save (DESIGN 4, 10, 11).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuutil {

enum class Family : uint8_t {
  parallel_compute = 1,
  data = 2,
  model = 3,
  memory = 4,
  communication = 5,
  resources = 6,
  monitoring = 7,
};

enum class Severity : uint8_t { info, warning, critical };

// A named number with its unit, in the order in which a reader wants them.
struct Evidence {
  std::string name;   // "input_wait_ratio": units in the name
  double value = 0;
  std::string text;   // the same for people: "80 % of the step waits for input"
};

struct GainRange {
  double low = 0;   // share of the step that would be saved
  double high = 0;
};

struct Finding {
  std::string id;           // stable, public: "input_cpu_bound"
  Family family = Family::monitoring;
  std::string title;        // one line for the log
  std::vector<Evidence> evidence;
  std::string where;        // file:line, loader name, ...; empty where none
  GainRange gain_ratio;
  double confidence = 0;    // 0..1
  std::vector<std::string> remedies;  // ids, best first
  std::string advice;       // what a person can do where no remedy applies
  // Where it is a danger to the run and not time lost, the gain says nothing of how bad it is.
  Severity at_least = Severity::info;
};

// info below 0.02 of the step, warning from there, critical from 0.2 (of the low end); never below
// what the finding itself asks for.
inline Severity severity(const Finding& finding) {
  const double low = finding.gain_ratio.low;
  const Severity by_gain = low >= 0.2    ? Severity::critical
                           : low >= 0.02 ? Severity::warning
                                         : Severity::info;
  return std::max(by_gain, finding.at_least);
}

constexpr std::string_view severity_name(Severity value) {
  switch (value) {
    case Severity::critical: return "critical";
    case Severity::warning: return "warning";
    default: return "info";
  }
}

// A rule looked and either found something, found nothing, or could not tell.
enum class Verdict : uint8_t { found, clear, not_measured };

struct RuleResult {
  Verdict verdict = Verdict::not_measured;
  std::optional<Finding> finding;  // where found
  std::string reason;              // where not measured: which source is missing
};

}  // namespace gpuutil
