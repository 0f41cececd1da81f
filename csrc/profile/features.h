// What rules read: one window and its surroundings in base units. Every optional that is empty was not
// measured, which is not the same as zero.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/remedy_offer.h"
#include "profile/turn_cost.h"
#include "record/phase.h"

namespace gpuutil {

enum class DatasetKind : uint8_t { unknown, map_style, iterable };

// Where the time of a fetch in the training process goes, a batch: timed apart on a few early ones. Empty: not measured.
struct FetchCost {
  std::optional<double> row_seconds;      // reading the items
  std::optional<double> collate_seconds;  // making one batch of them
  std::optional<double> batch_seconds;    // one indexing instead of both, where the data set allows it
  std::optional<double> stack_seconds;    // one stack a field instead of the collate, where samples are arrays
};

// Facts about a loader that the Python side registers and keeps current.
struct LoaderFacts {
  uint32_t id = 0;
  std::string name;                    // "train_loader" or the dataset's class; for people
  DatasetKind dataset = DatasetKind::unknown;
  int32_t workers = 0;                 // active now
  int32_t user_workers = 0;            // what the user's code asked for
  int32_t prefetch = 0;                // batches per worker; 0 without workers
  int32_t batch_size = 0;              // 0 where unknown
  int32_t batches = 0;                 // in one pass; 0 where unknown
  int32_t last_batch_size = 0;         // of the last one; 0 where unknown
  bool persistent = false;             // workers outlive a pass, by the user's setting or by ours
  bool workers_changeable = false;
  std::string workers_reason;          // why not changeable
  std::optional<bool> draws_random;    // whether an item draws from the global generators
  std::vector<int32_t> worker_pids;
  FetchCost fetch;
  std::optional<int64_t> batch_bytes;  // of the tensors of one batch, the largest seen
  std::vector<RemedyOffer> offers;     // changes to this loader that are possible
};

struct WorkerLoad {
  int32_t pid = 0;
  std::optional<double> cores;         // CPU seconds per second
  std::optional<double> waiting_ratio; // share of looks in which it slept or waited for a disk
  std::optional<double> run_queue_wait_ratio = std::nullopt;  // of the time in which it could run
  std::optional<int32_t> threads = std::nullopt;
};

struct HostFeatures {
  std::optional<double> cpu_budget_cores;
  std::string cpu_budget_source;
  std::optional<double> own_cores;      // this process without its children
  std::optional<double> worker_cores;   // all workers of the loader
  std::optional<double> foreign_cores;  // neither ours nor our children's, in our mask
  std::optional<double> crowding_cores; // the part of it that takes from our budget
  std::optional<double> throttled_ratio;
  std::optional<double> run_queue_wait_ratio;
  std::optional<double> available_memory_bytes;
  std::optional<double> mask_cores;       // CPUs that our main thread may run on
  std::optional<double> allowed_cores;    // CPUs that nobody but our mask keeps from us
  std::optional<double> inherited_cores;  // in our mask when gpuutil was imported
  bool quotas_known = false;              // every control group above us was read
  std::optional<double> quota_cores;      // the tightest; empty where known and there is none
  std::optional<double> shm_size_bytes;   // of /dev/shm
  std::optional<double> shm_free_bytes;
  std::optional<double> open_descriptors;
  std::optional<double> descriptor_limit;       // soft; infinite where there is none
  std::optional<double> descriptor_hard_limit;  // likewise
};

struct Features {
  // The window.
  int64_t steps = 0;
  int64_t sampled_steps = 0;
  double coverage_ratio = 0;            // share of the window's time that sampled steps observed
  double step_seconds_p50 = 0;
  double step_seconds_p95 = 0;
  double samples_per_step = 0;          // 0 where unknown
  double micro_steps_per_step = 1;
  double input_wait_seconds_p50 = 0;    // per step
  double input_wait_seconds_p95 = 0;
  double input_wait_ratio = 0;          // of the window's wall time; exact, from every step
  std::array<std::optional<double>, kPhaseCount> phase_ratio;  // of the window's wall time
  std::optional<double> fetch_cpu_ratio;       // CPU per wall inside fetches (training thread)
  std::optional<double> operator_seconds;      // per step
  std::optional<double> python_gap_seconds;    // per step
  std::optional<double> user_python_seconds;   // per step
  bool has_optimizer = false;
  bool device_is_host = true;           // training on the CPU
  int32_t main_threads = 0;             // torch's intra-op threads; 0 where unknown
  int32_t ranks = 1;

  std::optional<LoaderFacts> loader;    // the one that feeds training
  std::optional<TurnCost> turn;         // between its passes, under its present settings
  std::vector<WorkerLoad> workers;
  std::optional<double> worker_mask_cores;  // CPUs that the workers may run on, all of them together
  HostFeatures host;

  // headspace: the step time that would be left if the input were free.
  double headspace_seconds() const {
    return step_seconds_p50 > input_wait_seconds_p50 ? step_seconds_p50 - input_wait_seconds_p50 : 0;
  }
};

}  // namespace gpuutil
