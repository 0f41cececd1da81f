// The engine of a process: its own thread drains the recorders, folds steps, samples the host, runs the rules and
// the controller. One mutex guards all of it; the training thread takes it only when it was asked to come
// (attention), at the end of an epoch, and in the public calls. The thread never takes the GIL.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collect/host_sample.h"
#include "profile/features.h"
#include "record/recorder.h"
#include "report/summary.h"
#include "timeline/epoch_turn.h"
#include "timeline/step.h"
#include "tune/change.h"

namespace gpuutil {

struct EngineOptions {
  std::string apply = "auto";
  int32_t ranks = 1;
  int32_t startup_steps = 20;
  double period_seconds = 0.05;
  double host_period_seconds = 0.5;
  double start_credit_seconds = 10;
  double regret_ratio = 0.01;
  int32_t max_workers = 0;         // 0: from the budgets
  bool device_is_host = true;
  int32_t main_threads = 0;
  int32_t inherited_cpus = 0;      // in the mask that the process came with; 0: unknown
  std::string stop_file;           // empty: none
  std::string log_dir;
  std::string environment_json = "{}";
  RunInfo run;                     // what the reports say of it; id, times and rung are filled in
  std::vector<std::string> missing;  // parts that could not be loaded, one line each
  std::optional<std::vector<Change>> replay;  // of an earlier run: applied at once, nothing is tried
  std::string root = "/";          // of procfs and the cgroup files; tests inject one
  bool own_thread = true;          // tests call fold() themselves
};

struct EpochText {
  int64_t epoch = 0;
  std::string text;
  std::string json;
  bool quiet = false;  // too soon after the last one for the log
};

// What the engine asks of the hot path. Any thread; must not block.
struct EngineSignals {
  std::function<void(uint32_t bits)> raise_attention;
  std::function<void(uint32_t every, uint32_t span)> set_sampling;
};

class Engine {
 public:
  Engine(EngineOptions options, RecorderRegistry& registry, EngineSignals signals);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Folds what was recorded so far. Any thread without the GIL; a few milliseconds at most.
  void flush();
  // No more trials; everything still applied is the caller's to take back. Closes the last epoch.
  void finish();
  void stop_thread();

  // Facts from the hands' side.
  void set_loader(LoaderFacts facts);
  void remove_loader(uint32_t id);
  void set_process(bool device_is_host, int32_t main_threads, int32_t ranks);
  void limit_apply(const std::string& rung);

  // Commands and their answers.
  std::optional<Command> next_command();
  void command_applied(int64_t id);
  void command_effective(int64_t id);
  void command_failed(int64_t id, const std::string& reason);
  std::string request_apply(const std::string& remedy, std::optional<int64_t> value);
  std::string request_revert(int64_t ledger_id);
  void revert_all(const std::string& reason);
  bool has_command() const;

  // Reports.
  std::vector<std::string> take_lines();
  std::vector<EpochText> take_epochs();
  std::vector<EpochText> epochs();  // all that are kept, oldest first
  std::string run_json();
  std::string findings_json();
  std::string ledger_json();
  std::string recipe();
  std::string state_line();
  std::vector<std::pair<std::string, std::string>> postfix();

  // Time that our Python code took on the user's threads.
  void add_own_time(int64_t duration_ns);
  // ns that the always-on hooks cost a step, measured at attach.
  void set_hook_cost(double ns);

 private:
  struct State;
  // All of these under the mutex.
  void run_thread();
  void fold_locked();
  void look_locked();
  void tune_locked(int64_t time_ns);
  void tell_changes();
  void take_step(const Step& step);
  void take_epoch(const EpochTurn& turn);
  void take_host(HostSample sample);
  std::string replay_path() const;

  const EngineOptions options_;
  RecorderRegistry& registry_;
  const EngineSignals signals_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int64_t next_step_ = 0;  // index of the step under way
  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace gpuutil
