#include "tune/loader_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gpuutil {

namespace {

constexpr double kWiden = 1.5;
constexpr double kLowEnd = 0.6;     // of a predicted gain that the model vouches for
constexpr double kPlausible = 0.5;  // confidence in a step of the hill climb
constexpr double kIdleWait = 0.01;  // no input wait to speak of
constexpr double kUneven = 1.5;     // p95 over median from which more depth may help
constexpr double kLeastWorkSeconds = 0.5e-3;  // input cheaper than this is not worth a process
constexpr double kInputBound = 0.02;
constexpr double kCrowdedStep = 0.05;  // what giving up one thread or worker too many may gain
constexpr double kHopeless = 0.05;     // so much slower by the model is not worth a trial
constexpr int kMaxSettle = 64;
constexpr double kMostlyWaiting = 0.5;

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", ratio * 100);
  return text;
}

std::string answered(const LoaderModel& model, const std::vector<std::string>& findings) {
  const auto given = [&](const char* id) {
    return std::find(findings.begin(), findings.end(), id) != findings.end();
  };
  const bool waiting = model.cpu_share() < kMostlyWaiting;
  std::vector<const char*> order = {"input_cpu_bound", "input_latency_bound"};
  if (waiting) std::swap(order[0], order[1]);
  if (model.now.workers == 0)
    order.insert(order.begin() + (waiting ? 1 : 0), "input_single_process");
  for (const char* id : order) {
    if (given(id)) return id;
  }
  return order.front();
}

void classify(const Features& features, bool workers, bool threads, Proposal* proposal) {
  if (threads && features.device_is_host) {
    proposal->exactness = Exactness::rounding;
    proposal->exactness_reason = "another number of threads adds in another order";
  }
  if (!workers) return;
  const std::optional<bool> draws = features.loader->draws_random;
  if (draws == false) return;
  proposal->exactness = Exactness::distribution;
  proposal->exactness_reason =
      draws ? "items draw random numbers: their streams move with the number of workers"
            : "whether items draw random numbers is not known";
  if (features.loader->workers == 0) {
    proposal->exactness_reason +=
        "; the trainer's own stream moves too, as its draws go to the workers";
  }
}

}  // namespace

Proposal loader_proposal(const Features& features, const LoaderSetting& from,
                         const LoaderSetting& to) {
  Proposal proposal;
  const uint32_t id = features.loader->id;
  const auto change = [&](const char* remedy, uint32_t subject, int before, int after) {
    if (before != after) proposal.changes.push_back(Change{remedy, subject, before, after});
  };
  change("loader_workers", id, from.workers, to.workers);
  change("loader_prefetch", id, from.prefetch, to.prefetch);
  change("main_threads", 0, from.threads, to.threads);
  classify(features, from.workers != to.workers, from.threads != to.threads, &proposal);
  const int flight = std::max(from.workers * from.prefetch, to.workers + 1);
  proposal.settle_steps = std::min(flight + 2, kMaxSettle);
  proposal.burst_from = burst_steps(from.workers);
  proposal.burst_to = burst_steps(to.workers);
  // Threads alone change at once; workers and queues must first fill and drain.
  if (from.workers == to.workers && from.prefetch == to.prefetch) {
    proposal.cheap_flip = true;
    proposal.settle_steps = 2;
  }
  proposal.risk = from.workers != to.workers ? 1.5 : 1.0;
  return proposal;
}

LoaderSetting LoaderSearch::target(const LoaderSetting& now, const Proposal& proposal) {
  LoaderSetting setting = now;
  for (const Change& change : proposal.changes) {
    const int to = static_cast<int>(change.to);
    if (change.remedy == "loader_workers") setting.workers = to;
    if (change.remedy == "loader_prefetch") setting.prefetch = to;
    if (change.remedy == "main_threads") setting.threads = to;
  }
  return setting;
}

std::vector<Proposal> LoaderSearch::propose(const Features& features, const LoaderModel& model,
                                            const LoaderFreedom& freedom, const Policy& policy,
                                            const std::vector<std::string>& findings) const {
  const int most = model.most_workers(policy, features.host.available_memory_bytes);
  std::vector<Move> moves;
  // Handing a batch from one process to another takes a few tenths of a millisecond of the trainer's own time.
  const bool too_cheap = model.now.workers == 0 && model.work_seconds < kLeastWorkSeconds;
  if (!too_cheap) {
    if (const std::optional<Move> move = jump(model, most, freedom, policy)) {
      if ((move->gain_low + move->gain_high) / 2 >= policy.min_gain) moves.push_back(*move);
    }
    // Around the present setting only where the model has nothing better to say.
    if (moves.empty()) moves = neighbours(model, most, freedom, policy, *features.loader);
  }
  if (const std::optional<Move> move = advised(model, freedom)) moves.push_back(*move);

  std::vector<Proposal> proposals;
  for (const Move& move : moves) {
    if (!move.saving && (move.gain_low + move.gain_high) / 2 < policy.min_gain) continue;
    if (!open(model.now, move.setting, policy)) continue;
    Proposal proposal = loader_proposal(features, model.now, move.setting);
    proposal.finding = move.advised ? "main_threads" : answered(model, findings);
    proposal.reason = move.reason;
    proposal.gain_low = move.gain_low;
    proposal.gain_high = move.gain_high;
    proposal.confidence = move.confidence;
    proposal.saving = move.saving;
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

std::optional<LoaderSearch::Move> LoaderSearch::jump(const LoaderModel& model, int most_workers,
                                                     const LoaderFreedom& freedom,
                                                     const Policy& policy) const {
  const bool late = model.wait_ratio() >= kInputBound;
  const bool crowded = model.saturated && model.now.workers + model.now.threads > model.cores;
  if (!late && !crowded) return std::nullopt;
  const LoaderSetting& now = model.now;
  SettingRange range{now.workers, now.workers, now.threads, now.threads};
  if (freedom.workers) {
    range.least_workers = 0;
    // The model is a guess from a few steps: far jumps are made in leaps, each of them measured.
    const int some = 2 * static_cast<int>(std::ceil(model.cores));
    const int leap = std::max(some, now.workers == 0 ? policy.first_workers : 2 * now.workers);
    range.most_workers = std::max(std::min(most_workers, leap), now.workers);
  }
  if (freedom.threads && now.threads > 0 && model.trainer_on_host) {
    range.least_threads = 1;
    range.most_threads = std::max(most_threads_, now.threads);
  }
  std::vector<LoaderSetting> excluded;
  for (const Tried& one : tried_) excluded.push_back(one.setting);
  std::erase(excluded, model.now);
  const LoaderSetting best = best_setting(model, range, excluded);
  if (best == model.now) return std::nullopt;
  Move move;
  move.setting = best;
  move.gain_high = model.gain(best);
  move.gain_low = kLowEnd * move.gain_high;
  move.confidence = late ? model.confidence : kPlausible;
  move.reason = percent(model.wait_ratio()) + " of the step waits for input that takes " +
                milliseconds(model.work_seconds) + " (" + percent(model.cpu_share()) +
                " CPU) beside a trainer of " + milliseconds(model.trainer_seconds) + " on " +
                std::to_string(static_cast<int>(std::lround(model.cores))) + " cores";
  return move;
}

std::vector<LoaderSearch::Move> LoaderSearch::neighbours(const LoaderModel& model, int most_workers,
                                                         const LoaderFreedom& freedom,
                                                         const Policy& policy,
                                                         const LoaderFacts& loader) const {
  std::vector<Move> moves;
  const LoaderSetting& now = model.now;
  const double wait = model.wait_ratio();
  const bool crowded = model.trainer_on_host && now.threads > 1 &&
                       now.workers * model.cpu_share() + now.threads > model.cores;
  const auto add = [&](LoaderSetting setting, double gain, const char* why) {
    if (model.gain(setting) < -kHopeless) return;
    Move move;
    move.setting = setting;
    move.gain_high = gain;
    move.gain_low = std::max(0.0, std::min(gain, model.gain(setting)) * kLowEnd);
    move.confidence = kPlausible;
    move.reason = why;
    moves.push_back(std::move(move));
  };
  if (now.workers == 0) return moves;
  if (freedom.workers) {
    const int up = std::max(now.workers + 1, static_cast<int>(std::lround(now.workers * kWiden)));
    // A full budget has nothing for another worker unless batches come unevenly.
    const bool full = model.saturated && model.cpu_share() > kMostlyWaiting;
    const double room = !full ? wait : model.spread_ratio > kUneven ? wait / 2 : 0;
    if (now.workers < most_workers && room >= policy.min_gain) {
      add({std::min(up, most_workers), now.prefetch, now.threads}, room, "input still comes late");
    }
    const int down = std::min(now.workers - 1, static_cast<int>(std::lround(now.workers / kWiden)));
    if (crowded && down >= 1) {
      add({down, now.prefetch, now.threads}, kCrowdedStep, "more workers and threads than cores");
    } else if (down >= 1 && wait < kIdleWait && now.workers > loader.user_workers) {
      Move move;
      move.setting = {down, now.prefetch, now.threads};
      move.confidence = kPlausible;
      move.saving = true;
      move.reason = "input is never late: fewer workers may do";
      moves.push_back(std::move(move));
    }
  }
  if (freedom.threads && now.threads > 0 && model.trainer_on_host) {
    const double trainer = model.trainer_seconds / model.step_seconds;
    if (now.threads < most_threads_ && !model.saturated) {
      const double faster = 1 - thread_speedup(now.threads) / thread_speedup(now.threads + 1);
      add({now.workers, now.prefetch, now.threads + 1}, trainer * faster,
          "cores are left for the trainer");
    }
    if (crowded && now.threads > 1) {
      add({now.workers, now.prefetch, now.threads - 1}, kCrowdedStep,
          "more workers and threads than cores");
    }
  }
  if (wait >= policy.min_gain && model.spread_ratio > kUneven &&
      now.prefetch < policy.max_prefetch) {
    add({now.workers, std::max(2, now.prefetch * 2), now.threads}, wait / 2,
        "batches take unequal time: a deeper queue may even them out");
  }
  return moves;
}

// The trainer's threads are the rule's business, the workers stay.
std::optional<LoaderSearch::Move> LoaderSearch::advised(const LoaderModel& model,
                                                        const LoaderFreedom& freedom) {
  const LoaderSetting& now = model.now;
  if (!freedom.threads || !freedom.thread_wish || now.threads <= 0) return std::nullopt;
  const ThreadWish& wish = *freedom.thread_wish;
  if (wish.threads < 1 || wish.threads == now.threads) return std::nullopt;
  Move move;
  move.setting = {now.workers, now.prefetch, wish.threads};
  move.gain_low = wish.gain_low;
  move.gain_high = wish.gain_high;
  move.confidence = wish.confidence;
  move.reason = wish.reason;
  move.advised = true;
  return move;
}

std::optional<LoaderSearch::Direction> LoaderSearch::direction(const LoaderSetting& from,
                                                               const LoaderSetting& to) {
  if (to.workers != from.workers) return to.workers > from.workers ? kWorkersUp : kWorkersDown;
  if (to.threads != from.threads) return to.threads > from.threads ? kThreadsUp : kThreadsDown;
  if (to.prefetch != from.prefetch)
    return to.prefetch > from.prefetch ? kPrefetchUp : kPrefetchDown;
  return std::nullopt;
}

bool LoaderSearch::open(const LoaderSetting& from, const LoaderSetting& to,
                        const Policy& policy) const {
  const std::optional<Direction> way = direction(from, to);
  return way && failures_[*way] < policy.failed_refinements && !tried(to);
}

bool LoaderSearch::tried(const LoaderSetting& setting) const {
  return std::any_of(tried_.begin(), tried_.end(),
                     [&](const Tried& one) { return nearly_same(one.setting, setting); });
}

void LoaderSearch::concluded(const LoaderSetting& now, const Proposal& proposal, Outcome outcome) {
  const LoaderSetting to = target(now, proposal);
  const bool undecided = outcome == Outcome::inconclusive;
  tried_.push_back({to, undecided});
  if (outcome == Outcome::kept) tried_.push_back({now, false});
  const std::optional<Direction> way = direction(now, to);
  if (way) failures_[*way] = outcome == Outcome::kept ? 0 : failures_[*way] + 1;
}

void LoaderSearch::forget_undecided() {
  if (std::erase_if(tried_, [](const Tried& one) { return one.undecided; }) > 0) failures_.fill(0);
}

void LoaderSearch::forget() {
  tried_.clear();
  failures_.fill(0);
}

}  // namespace gpuutil
