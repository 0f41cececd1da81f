// Everything that the engine keeps while it is attached. Private to engine/; guarded by the engine's mutex.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/host_sampler.h"
#include "diagnose/engine.h"
#include "engine/engine.h"
#include "engine/loader_book.h"
#include "engine/overhead_meter.h"
#include "engine/pace.h"
#include "engine/sampling_plan.h"
#include "profile/epoch_budget.h"
#include "profile/window.h"
#include "report/summary.h"
#include "timeline/step_assembler.h"
#include "tune/controller.h"

namespace gpuutil {

inline constexpr size_t kMaxEpochs = 1'000;  // summaries kept for report.json; older ones are in epochs.jsonl

struct Engine::State {
  State(const EngineOptions& options, int64_t start_ns, StepAssembler::StepSink on_step,
        StepAssembler::EpochSink on_epoch);

  StepAssembler assembler;
  Window window;
  EpochBudget budget;
  SamplingPlan sampling;
  Pace pace;
  OverheadMeter overhead;
  LoaderBook loaders;
  HostSampler host;
  Controller controller;

  // Facts of the process.
  bool device_is_host = true;
  int32_t main_threads = 0;
  int32_t ranks = 1;
  std::string apply;
  std::vector<Missing> missing;

  // The latest of each.
  std::optional<HostSample> host_sample;
  Features features;
  Diagnosis diagnosis;
  uint32_t training_loader = 0;
  int64_t next_host_ns = 0;
  int64_t next_look_ns = 0;
  uint64_t dropped_seen = 0;
  int64_t last_logged_ns = 0;
  int64_t last_drain_ns = 0;

  // Of the epoch under way.
  double foreign_sum_cores = 0;
  int64_t foreign_samples = 0;
  double held_seconds = 0;
  std::vector<int64_t> changed_rows;
  PhaseTimes run_budget;

  // For the training thread to fetch.
  std::optional<Command> command;
  bool command_taken = false;
  std::vector<std::string> lines;
  std::vector<EpochText> texts;          // not fetched yet
  std::deque<EpochSummary> epochs;
  std::deque<EpochText> epoch_texts;     // of `epochs`, the latest kMaxEpochs
  std::map<int64_t, std::string> row_states;  // ledger id -> state last told
  double started_unix_seconds = 0;
  std::string run_id;
  bool finished = false;   // detached: nothing is decided any more
  bool stopped = false;    // by the STOP file: only undoing goes on
};

}  // namespace gpuutil
