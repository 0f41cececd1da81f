// What a report is made from: plain structs that the engine fills and the files of report/ turn
// into text and JSON. Empty optionals were not measured. No behaviour here beyond names of values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/engine.h"
#include "diagnose/finding.h"
#include "record/phase.h"
#include "tune/ledger.h"

namespace gpuutil {

struct RunInfo {
  std::string id;
  double started_unix_seconds = 0;
  std::optional<double> ended_unix_seconds;  // empty while it runs
  std::string apply;                         // the rung in force
  std::string gpuutil_version;
  std::string torch_version;
  std::string python_version;
  int32_t rank = 0;
  int32_t ranks = 1;
};

struct DeviceInfo {
  std::string kind = "cpu";
  std::string name;
  int32_t count = 0;
};

// A part that could not be loaded or read, and why.
struct Missing {
  std::string part;    // "_torch", "cgroup"
  std::string reason;  // "built for torch 2.12.1, this is 2.13.0"
};

// For names in texts and recipes.
struct LoaderName {
  uint32_t id = 0;
  std::string name;
};

struct Overhead {
  std::optional<double> microseconds_per_step;
  std::optional<double> ratio;  // of the wall time
  int32_t threads = 0;
};

struct WaterfallPart {
  std::string cause;
  double ratio = 0;
};

// The steady profile (DESIGN 5): windows only.
struct ProfileSummary {
  int64_t steps = 0;
  std::optional<double> step_seconds_p50;
  std::optional<double> step_seconds_p95;
  std::array<std::optional<double>, kPhaseCount> phase_ratio;
  std::vector<WaterfallPart> waterfall;
  std::optional<double> unexplained_ratio;
  std::optional<double> device_busy_ratio;  // of the wall time; no device lanes on a CPU
  std::optional<double> coverage_ratio;     // share of the time that sampled steps observed
};

// Other programs on our CPUs.
struct ForeignUse {
  std::optional<double> cores;         // mean over the epoch
  std::optional<double> budget_cores;  // what this process may use
  double held_seconds = 0;             // how long trials waited for quiet
};

struct EpochSummary {
  int64_t epoch = 0;  // as the user counts it; texts print it unchanged
  int64_t steps = 0;
  double wall_seconds = 0;
  std::optional<double> samples_per_second;
  PhaseTimes budget;  // all wall time; total() is wall_seconds
  ProfileSummary profile;

  // The first reported epoch, to compare with; empty in that epoch itself.
  std::optional<int64_t> first_epoch;
  std::optional<double> first_step_seconds_p50;
  std::optional<double> first_samples_per_second;

  std::vector<Finding> findings;  // ranked
  std::vector<NotMeasured> not_measured;
  std::vector<LedgerRow> changes;  // rows that changed state in this epoch
  std::vector<LoaderName> loaders;
  ForeignUse foreign;
  std::vector<Missing> missing;
  Overhead overhead;
};

struct RunSummary {
  RunInfo run;
  DeviceInfo device;
  std::string environment_json = "{}";  // an object; anything that is not JSON becomes null
  std::optional<double> cpu_budget_cores;
  std::string cpu_budget_source;
  std::vector<EpochSummary> epochs;
  PhaseTimes budget;
  ProfileSummary profile;
  std::vector<Finding> findings;
  std::vector<NotMeasured> not_measured;
  std::vector<LedgerRow> ledger;
  std::vector<LoaderName> loaders;
  std::vector<Missing> missing;
  Overhead overhead;
  std::string replay_path;  // where report.json lies; empty where none is written
};

}  // namespace gpuutil
