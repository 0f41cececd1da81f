// A training run in miniature for tests of the controller: step times as a function of workers,
// prefetch, threads, cores and latency, with noise, and hands that can be slow, fail or stay
// silent. It shares no formula with csrc/tune/loader_model: what the model guesses is given here,
// and not always as the model would have it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tune/controller.h"

namespace gpuutil::testing {

struct TrainerFacts {
  double input_seconds = 0.1;     // to make one batch in one process
  double input_cpu_share = 1;     // of it on a CPU
  double trainer_seconds = 0.03;  // with one thread
  std::vector<double> thread_speedup = {1, 1.3, 1.5, 1.6};
  double cores = 2;
  double crowd_penalty = 0.35;  // for a core too few beside more than one thread
  double order_loss = 0.02;     // workers deliver in order
  double noise_ratio = 0.02;
  double spike_ratio = 0.005;  // of steps, five times as long
  double drift_per_step = 0;
  double turn_seconds = 0;  // at each epoch turn, for each worker: they are started again
  int64_t epoch_steps = 1'000'000;
  bool bursts = true;
};

// Decode takes most of the step, on two cores.
inline TrainerFacts decode_bound() {
  TrainerFacts facts;
  facts.input_seconds = 0.098;
  facts.trainer_seconds = 0.030;
  facts.thread_speedup = {1, 1.9};
  return facts;
}

enum class Hands { willing, failing, silent, never_effective };

class SimulatedTrainer {
 public:
  explicit SimulatedTrainer(const TrainerFacts& given, uint64_t seed = 1)
      : facts(given), random_(seed) {
    loader.id = 1;
    loader.name = "train_loader";
    loader.dataset = DatasetKind::map_style;
    loader.batch_size = 16;
    loader.workers_changeable = true;
    loader.draws_random = true;
  }

  TrainerFacts facts;
  LoaderFacts loader;
  int threads = 2;
  int ranks = 1;
  Hands hands = Hands::willing;
  int start_steps = 3;         // until the first batch of new workers
  double foreign_cores = 0;    // takes from the budget
  double slowdown = 1;         // of everything
  double worker_slowdown = 1;  // of the run with workers
  double offer_speedup = 1;    // of everything, while all that is offered is in force
  std::vector<Finding> extra_findings;
  int64_t now_ns = 1'000'000'000;
  int64_t index = 0;

  double trainer(int t) const {
    return facts.trainer_seconds / facts.thread_speedup[static_cast<size_t>(std::max(1, t) - 1)];
  }

  // The mean step under a setting.
  double truth(int workers, int t) const {
    const double alone = trainer(t);
    if (workers == 0) return alone + facts.input_seconds;
    const double cores = std::max(0.5, facts.cores - foreign_cores);
    const double cpu = facts.input_seconds * facts.input_cpu_share;
    const double step = std::max({alone, facts.input_seconds / workers, (cpu + alone * t) / cores});
    const double busy = std::min(workers * facts.input_cpu_share, cpu / step);
    const double missing = t > 1 ? std::max(0.0, busy + t - cores) : 0;
    return step * (1 + facts.crowd_penalty * missing / cores) * (1 + facts.order_loss) *
           worker_slowdown;
  }

  double best_of_grid(int most_workers, int most_threads) const {
    double best = truth(0, most_threads);
    for (int w = 0; w <= most_workers; ++w) {
      for (int t = 1; t <= most_threads; ++t) best = std::min(best, truth(w, t));
    }
    return best;
  }

  double truth_now() const {
    const auto in_force = [](const RemedyOffer& offer) { return offer.value == offer.to; };
    const bool taken = !loader.offers.empty() &&
                       std::all_of(loader.offers.begin(), loader.offers.end(), in_force);
    return truth(loader.workers, threads) / (taken ? offer_speedup : 1);
  }

  Step step() {
    const double pace = slowdown * (1 + facts.drift_per_step * static_cast<double>(index));
    const double mean = truth_now() * pace;
    double wait = mean - std::min(mean, trainer(threads) * pace);
    double rest = mean - wait;
    // With N workers one step in N waits for all of them.
    if (facts.bursts && loader.workers > 1) {
      wait = index % loader.workers == 0 ? wait * loader.workers : 0;
    }
    const double noise = std::exp(facts.noise_ratio * normal());
    rest *= noise;
    wait *= noise;
    if (random_.unit() < facts.spike_ratio) rest *= 5;

    Step step;
    step.index = index++;
    step.epoch = step.index / facts.epoch_steps;
    if (step.index < 2) step.marks |= kStepFirst;
    if (step.index > 0 && step.index % facts.epoch_steps == 0) {
      step.marks |= kStepEpochTurn;
      wait += facts.turn_seconds * loader.workers;
    }
    if (changed_) step.marks |= kStepChanged;
    changed_ = false;
    step.begin_ns = now_ns;
    step.phases[Phase::input_wait] = ns(wait);
    step.phases[Phase::other] = ns(rest);
    step.end_ns = now_ns + step.phases.total();
    step.samples = loader.batch_size;
    step.micro_steps = 1;
    step.loader = loader.id;
    now_ns = step.end_ns;
    return step;
  }

  Features features() const {
    Features f;
    f.steps = 20;
    f.fetch_cpu_ratio = facts.input_cpu_share;
    f.main_threads = threads;
    f.ranks = ranks;
    f.loader = loader;
    f.host = host();
    return f;
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> all = extra_findings;
    all.emplace_back().id = "input_cpu_bound";
    return all;
  }

  HostFeatures host() const {
    HostFeatures h;
    h.cpu_budget_cores = facts.cores;
    const double step = truth_now();
    const double cpu = facts.input_seconds * facts.input_cpu_share;
    const double own = trainer(threads) * threads + (loader.workers == 0 ? cpu : 0);
    h.own_cores = own / step;
    h.worker_cores = loader.workers == 0 ? 0 : cpu / step;
    h.foreign_cores = foreign_cores;
    h.crowding_cores = foreign_cores;
    h.available_memory_bytes = 16e9;
    return h;
  }

  // The hands. Answers of a command come at once or, for effect, some steps later.
  void handle(const Command& command, Controller* controller) {
    commands.push_back(command);
    if (hands == Hands::silent) return;
    if (hands == Hands::failing && command.kind == CommandKind::apply) {
      return controller->failed(command.id, "no memory for another process");
    }
    for (const Change& change : command.changes) {
      const int value =
          static_cast<int>(command.kind == CommandKind::apply ? change.to : change.from);
      if (change.remedy == "loader_workers") loader.workers = value;
      if (change.remedy == "loader_prefetch") loader.prefetch = value;
      if (change.remedy == "main_threads") threads = value;
      for (RemedyOffer& offer : loader.offers) {
        if (change.remedy == offer.remedy) offer.value = value;
      }
    }
    changed_ = true;
    controller->applied(command.id);
    if (hands != Hands::never_effective) pending_.push_back({command.id, index + start_steps});
  }

  // One turn of the loop: a step, what is seen of it, and what is to be done.
  void turn(Controller* controller) {
    const Step done = step();
    controller->observe_step(done);
    while (!pending_.empty() && pending_.front().second <= done.index) {
      controller->effective(pending_.front().first, done.index);
      pending_.pop_front();
    }
    if (index % 5 == 0) controller->observe_host(host());
    if (index % 10 == 0) controller->observe_features(features(), findings());
    if (const std::optional<Command> command = controller->poll(now_ns))
      handle(*command, controller);
  }

  void run(Controller* controller, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) turn(controller);
  }

  std::vector<Command> commands;

 private:
  static int64_t ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }
  double normal() {
    const double u = std::max(random_.unit(), 1e-12);
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * random_.unit());
  }

  Random random_;
  bool changed_ = false;
  std::deque<std::pair<int64_t, int64_t>> pending_;  // command, step at which it takes effect
};

}  // namespace gpuutil::testing
