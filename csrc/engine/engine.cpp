#include "engine/engine.h"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/clock.h"
#include "engine/attention.h"
#include "engine/state.h"
#include "engine/summaries.h"
#include "profile/steady_profile.h"
#include "profile/waterfall.h"
#include "report/change_line.h"
#include "report/epoch_report.h"
#include "report/run_json.h"

namespace gpuutil {
namespace {

constexpr int64_t kLookPeriodNs = 250'000'000;  // rules and controller look at the profile this often
constexpr int64_t kQuietNs = 1'000'000'000;
constexpr int64_t kShortRestNs = 2'000'000'000;

int64_t to_ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Policy policy_of(const EngineOptions& options) {
  Policy policy;
  policy.rung = rung_from_name(options.apply).value_or(Rung::observe);
  policy.regret_ratio = options.regret_ratio;
  policy.regret_credit_seconds = options.start_credit_seconds;
  if (options.max_workers > 0) policy.max_workers = options.max_workers;
  return policy;
}

ControllerOptions controller_options(const EngineOptions& options) {
  ControllerOptions result;
  result.policy = policy_of(options);
  if (options.replay) {
    if (result.policy.rung != Rung::observe) result.replay = *options.replay;
    if (result.replay.empty()) result.policy.rung = Rung::observe;  // that run kept nothing
  }
  return result;
}

std::string row_state(const LedgerRow& row) {
  return std::string(outcome_name(row.outcome)) + (row.provisional ? "?" : "");
}

}  // namespace

Engine::State::State(const EngineOptions& options, int64_t start_ns, StepAssembler::StepSink on_step,
                     StepAssembler::EpochSink on_epoch)
    : assembler(std::move(on_step), std::move(on_epoch), start_ns),
      sampling(options.startup_steps),
      pace(to_ns(options.period_seconds), to_ns(options.host_period_seconds)),
      host(HostSamplerOptions{.root = options.root}),
      controller(controller_options(options)),
      device_is_host(options.device_is_host),
      main_threads(options.main_threads),
      ranks(options.ranks),
      apply(options.apply),
      started_unix_seconds(unix_seconds()) {
  last_drain_ns = start_ns;
  for (const std::string& reason : options.missing) missing.push_back({"_torch", reason});
  char text[32] = "";
  const auto seconds = static_cast<std::time_t>(started_unix_seconds);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  run_id = text;
}

Engine::Engine(EngineOptions options, RecorderRegistry& registry, EngineSignals signals)
    : options_(std::move(options)), registry_(registry), signals_(std::move(signals)) {
  state_ = std::make_unique<State>(
      options_, now_ns(), [this](const Step& step) { take_step(step); },
      [this](const EpochTurn& turn) { take_epoch(turn); });
  if (options_.own_thread) thread_ = std::thread([this] { run_thread(); });
}

Engine::~Engine() { stop_thread(); }

void Engine::stop_thread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Engine::run_thread() {
  pthread_setname_np(pthread_self(), "gpuutil-engine");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // The host is read outside of the mutex: files may be slow, and nobody may wait for them.
    const int64_t time_ns = now_ns();
    const bool look_at_host = time_ns >= state_->next_host_ns;
    const bool look_for_stop = look_at_host && !options_.stop_file.empty();
    const std::vector<int32_t> pids = look_at_host ? state_->loaders.worker_pids() : std::vector<int32_t>();
    lock.unlock();
    std::optional<HostSample> sample;
    bool stop_wanted = false;
    if (look_at_host) {
      sample = state_->host.sample(time_ns, pids);
      struct stat info {};
      stop_wanted = look_for_stop && ::stat(options_.stop_file.c_str(), &info) == 0;
    } else {
      state_->host.poll_states();
    }
    lock.lock();
    if (stopping_) break;
    if (sample) {
      state_->next_host_ns = time_ns + state_->pace.host_period_ns();
      take_host(std::move(*sample));
    }
    if (stop_wanted && !state_->stopped) {
      state_->stopped = true;
      state_->lines.push_back("STOP found in the log directory: every change is taken back, no more are made");
      state_->controller.revert_all("STOP file");
    }
    fold_locked();
    wake_.wait_for(lock, std::chrono::nanoseconds(state_->pace.fold_period_ns()), [this] { return stopping_; });
  }
}

void Engine::flush() {
  const std::lock_guard lock(mutex_);
  fold_locked();
}

void Engine::fold_locked() {
  State& state = *state_;
  const int64_t time_ns = now_ns();
  const size_t events = registry_.drain([&](const Recorder& recorder, const Event& event) {
    Event completed = event;
    state.loaders.complete(completed);
    state.assembler.push(static_cast<uint32_t>(recorder.thread_id()), completed);
  });
  const uint64_t dropped = registry_.dropped();
  if (dropped != state.dropped_seen) {
    state.dropped_seen = dropped;
    state.assembler.mark(state.last_drain_ns, time_ns, kStepDropped);
  }
  const bool calm = state.controller.calm() && state.sampling.started();
  state.pace.turned(events, time_ns - state.last_drain_ns, calm, state.loaders.has_workers());
  state.last_drain_ns = time_ns;
  state.assembler.drained(time_ns);
  const Cycle cycle = state.assembler.cycle();
  signals_.set_sampling(state.sampling.every(), cycle.learnt ? std::max(1u, cycle.observation_span()) : 1u);
  if (time_ns >= state.next_look_ns) {
    state.next_look_ns = time_ns + kLookPeriodNs;
    look_locked();
  }
  tune_locked(time_ns);
}

void Engine::take_step(const Step& step) {
  State& state = *state_;
  next_step_ = step.index + 1;
  const double cost_before_ns = state.sampling.sampled_cost_ns();
  state.sampling.add(step);
  state.overhead.add_step(step, state.sampling.sampled_cost_ns() - cost_before_ns);
  state.window.add(step);
  state.budget.add(step);
  if (step.loader != 0) state.training_loader = step.loader;
  state.controller.observe_step(step);
}

void Engine::take_host(HostSample sample) {
  State& state = *state_;
  if (sample.cpu.foreign) {
    state.foreign_sum_cores += *sample.cpu.foreign;
    ++state.foreign_samples;
  }
  const bool holding = state.controller.state(sample.time_ns).activity == Activity::holding;
  if (holding && sample.interval_seconds) state.held_seconds += *sample.interval_seconds;
  state.controller.observe_host(host_features(sample));
  state.host_sample = std::move(sample);
}

// The profile, the rules, and what follows from them for the controller.
void Engine::look_locked() {
  State& state = *state_;
  const LoaderFacts* facts = state.loaders.find(state.training_loader);
  const size_t burst = facts != nullptr && facts->workers > 1 ? static_cast<size_t>(facts->workers) : 1;
  state.features = steady_features(state.window, burst);
  Features& features = state.features;
  features.device_is_host = state.device_is_host;
  features.main_threads = state.main_threads;
  features.ranks = state.ranks;
  if (facts != nullptr) {
    features.loader = *facts;
    features.turn = state.loaders.turn_cost(facts->id);
    if (state.host_sample) {
      features.workers = worker_loads(*state.host_sample, *facts);
      features.worker_mask_cores = worker_mask_cores(*state.host_sample, *facts);
    }
  }
  if (state.host_sample) features.host = host_features(*state.host_sample);
  if (options_.inherited_cpus > 0) features.host.inherited_cores = options_.inherited_cpus;
  state.diagnosis = diagnose(features);
  // A loader that is gone, like one that ended with the run, has nothing to be changed.
  if (!state.finished && !state.loaders.is_gone(state.training_loader)) {
    state.controller.observe_features(features, state.diagnosis.findings);
  }
}

void Engine::tune_locked(int64_t time_ns) {
  State& state = *state_;
  if (!state.finished) {
    // Polled while a command is unanswered too: that is where its deadline is looked at.
    if (auto command = state.controller.poll(time_ns)) {
      state.command = std::move(command);
      state.command_taken = false;
    }
  }
  tell_changes();
  uint32_t bits = 0;
  if (state.command) bits |= kAttentionCommand;
  if (!state.lines.empty() || !state.texts.empty()) bits |= kAttentionReport;
  if (bits != 0) signals_.raise_attention(bits);
}

// One log line for each row of the ledger whose state moved.
void Engine::tell_changes() {
  State& state = *state_;
  const auto names = state.loaders.names();
  for (const LedgerRow& row : state.controller.ledger().rows()) {
    if (row.outcome == Outcome::running && !row.in_force) continue;  // asked for, not begun yet
    std::string now = row_state(row);
    std::string& told = state.row_states[row.id];
    if (told == now) continue;
    told = std::move(now);
    state.lines.push_back(change_line(row, names));
    state.changed_rows.push_back(row.id);
  }
}

void Engine::take_epoch(const EpochTurn& turn) {
  State& state = *state_;
  const EpochAccount account = state.budget.close(turn);
  state.run_budget += account.phases;
  if (turn.steps == 0) return;  // an attachment that ended before it began, or two turns at once
  look_locked();
  EpochSummary summary = epoch_summary(account);
  summary.profile = profile_summary(state.features, host_waterfall(state.window));
  summary.profile.coverage_ratio = account.coverage_ratio;
  for (size_t i = 0; i < kPhaseCount; ++i) {
    const auto ns = account.phase_ns(static_cast<Phase>(i));
    if (!ns) summary.profile.phase_ratio[i].reset();
  }
  if (!state.epochs.empty()) {
    const EpochSummary& first = state.epochs.front();
    summary.first_epoch = first.epoch;
    summary.first_step_seconds_p50 = first.profile.step_seconds_p50;
    summary.first_samples_per_second = first.samples_per_second;
  }
  summary.findings = state.diagnosis.findings;
  summary.not_measured = state.diagnosis.not_measured;
  tell_changes();
  std::sort(state.changed_rows.begin(), state.changed_rows.end());
  state.changed_rows.erase(std::unique(state.changed_rows.begin(), state.changed_rows.end()),
                           state.changed_rows.end());
  for (const int64_t id : state.changed_rows) {
    if (const LedgerRow* row = state.controller.ledger().find(id)) summary.changes.push_back(*row);
  }
  state.changed_rows.clear();
  summary.loaders = state.loaders.names();
  if (state.foreign_samples > 0) {
    summary.foreign.cores = state.foreign_sum_cores / static_cast<double>(state.foreign_samples);
  }
  summary.foreign.budget_cores = state.features.host.cpu_budget_cores;
  summary.foreign.held_seconds = state.held_seconds;
  state.foreign_sum_cores = state.held_seconds = 0;
  state.foreign_samples = 0;
  summary.missing = state.missing;
  summary.overhead = state.overhead.since_mark(1);
  state.overhead.mark();

  // Loops of many tiny epochs: the log says something about once a second, the files hold every epoch.
  // So is a short rest that the end of the run leaves.
  const bool quiet = turn.end_ns - state.last_logged_ns < kQuietNs ||
                     (turn.kind == EpochEnd::end && turn.wall_ns() < kShortRestNs);
  if (!quiet) state.last_logged_ns = turn.end_ns;
  EpochText text{summary.epoch, gpuutil::epoch_report(summary), epoch_json(summary), quiet};
  state.texts.push_back(text);
  state.epoch_texts.push_back(std::move(text));
  // The first one stays: later ones are compared with it.
  if (state.epochs.size() >= kMaxEpochs) {
    state.epochs.erase(state.epochs.begin() + 1);
    state.epoch_texts.erase(state.epoch_texts.begin() + 1);
  }
  state.epochs.push_back(std::move(summary));
}

void Engine::finish() {
  const std::lock_guard lock(mutex_);
  fold_locked();
  state_->finished = true;
  state_->controller.run_ended();
  state_->assembler.flush(now_ns());
  tell_changes();
}

}  // namespace gpuutil
