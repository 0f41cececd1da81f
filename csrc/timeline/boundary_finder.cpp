// What is decided, and when. The rules for each kind of event are in boundary_rules.cpp.
#include "timeline/boundary_finder.h"

#include <algorithm>

namespace gpuutil {

void BoundaryFinder::restart() {
  const bool steps = user_steps_, epochs = user_epochs_;
  const int64_t last_ns = last_ns_;
  const uint64_t last_sequence = last_sequence_;
  *this = BoundaryFinder();
  user_steps_ = steps;
  user_epochs_ = epochs;
  if (user_steps_) mode_ = Mode::user;
  last_ns_ = last_ns;
  last_sequence_ = last_sequence;
}

void BoundaryFinder::feed(const Token& token) {
  const bool was_known = mode_ != Mode::unknown;
  if (!was_known) held_.push_back(token);
  learn(token);
  if (!was_known) return;  // it runs with the others, as soon as the loop is known
  if (mode_ == Mode::unknown) {
    held_.push_back(token);
  } else {
    run(token);
  }
}

void BoundaryFinder::learn(const Token& token) {
  if (token.remote) return;
  if (token.kind == TokenKind::user_epoch) user_epochs_ = true;
  if (token.kind == TokenKind::user_step && !user_steps_) {
    user_steps_ = true;
    const bool was_known = mode_ != Mode::unknown;
    mode_ = Mode::user;
    if (!was_known) settle();
    return;
  }
  const bool batch =
      token.kind == TokenKind::fetch_end && (token.flags & (kFetchExhausted | kFetchError)) == 0;
  if (batch) turns_.see_fetch(token.subject);
  if (token.kind == TokenKind::optimizer_end) {
    const bool first = !optimizers_seen_;
    optimizers_seen_ = true;
    turns_.see_optimizer(token.subject);
    if (mode_ == Mode::user) return;
    const bool other_evidence = mode_ == Mode::fetch || mode_ == Mode::backward;
    if (!turns_.settled() || (first && other_evidence)) {
      if (mode_ != Mode::unknown && !turns_.many_optimizers()) mode_ = Mode::unknown;
    } else if (mode_ == Mode::unknown) {
      settle();
    }
    return;
  }
  if (mode_ != Mode::unknown) return;
  if (optimizers_seen_) {
    if (turns_.settled()) settle();
    return;
  }
  if (batch && ++held_fetches_ >= kFetchesWithoutOptimizer) settle();
  if (token.kind == TokenKind::backward_end && ++held_backwards_ >= 3 && held_fetches_ == 0)
    settle();
}

void BoundaryFinder::settle() {
  if (user_steps_) {
    mode_ = Mode::user;
  } else if (optimizers_seen_) {
    if (!turns_.settled()) turns_.settle();
    mode_ = turns_.many_optimizers() ? Mode::fetch : Mode::optimizer;
  } else if (held_fetches_ > 0) {
    mode_ = Mode::fetch;
  } else if (held_backwards_ > 0) {
    mode_ = Mode::backward;
  } else {
    return;
  }
  run_ = 0;
  held_fetches_ = held_backwards_ = 0;
  std::deque<Token> held;
  held.swap(held_);
  for (const Token& token : held) run(token);
}

void BoundaryFinder::flush() {
  if (mode_ == Mode::unknown) settle();
  for (const Token& token : held_) run(token);  // nothing but iterators: still no step
  held_.clear();
  resolve_ended(false);
}

void BoundaryFinder::idle(int64_t now_ns, int64_t patience_ns) {
  if (ended_ && now_ns - ended_->token.time_ns >= patience_ns) resolve_ended(false);
}

void BoundaryFinder::give_in(int64_t now_ns) {
  if (mode_ == Mode::unknown) {
    settle();
    held_.clear();
  }
  for (LoaderPass& pass : passes_.all()) {
    if (pass.proven || pass.exhausted || fetches_of(pass.loader) < 2) continue;
    decide_evaluation(pass, now_ns);
    pass.begin_ns = now_ns;
  }
  if (overfull()) cut(now_ns, UINT64_MAX);
}

Cycle BoundaryFinder::cycle() const {
  Cycle cycle = turns_.cycle();
  cycle.learnt = mode_ != Mode::unknown;
  return cycle;
}

void BoundaryFinder::put(Boundary decision) {
  if (decision.kind != DecisionKind::evaluation) {
    decision.time_ns = std::max(decision.time_ns, last_ns_);
    decision.sequence = std::max(decision.sequence, last_sequence_);
    last_ns_ = decision.time_ns;
    if (decision.sequence != UINT64_MAX) last_sequence_ = decision.sequence;
  }
  decisions_.push_back(decision);
}

void BoundaryFinder::cut(int64_t time_ns, uint64_t sequence) {
  Boundary step;
  step.time_ns = time_ns;
  step.sequence = sequence;
  bool samples_known = true;
  auto fetch = fetches_.begin();
  for (; fetch != fetches_.end() && fetch->sequence < sequence; ++fetch) {
    ++step.fetches;
    step.samples += fetch->samples;
    samples_known = samples_known && fetch->samples > 0;
    if (step.loader == 0) step.loader = fetch->loader;
    if (std::find(natural_loaders_.begin(), natural_loaders_.end(), fetch->loader) ==
        natural_loaders_.end()) {
      natural_loaders_.push_back(fetch->loader);
    }
  }
  fetches_.erase(fetches_.begin(), fetch);
  if (!samples_known) step.samples = 0;

  auto end = ends_.begin();
  while (end != ends_.end() && end->sequence < sequence) ++end;
  step.optimizer_ends = static_cast<uint32_t>(end - ends_.begin());
  ends_.erase(ends_.begin(), end);
  natural_fetches_ += step.fetches;
  natural_ends_ += step.optimizer_ends;

  step.turn = std::erase_if(turn_marks_, [&](uint64_t at) { return at < sequence; }) > 0;
  const uint32_t usual = turns_.cycle().fetches;
  step.partial = mode_ == Mode::optimizer && step.fetches > 0 && step.fetches < usual;
  put(step);
}

void BoundaryFinder::turn(int64_t time_ns, uint64_t sequence, uint32_t loader, EpochEnd end) {
  turn_marks_.push_back(sequence);
  pass_sequence_ = sequence;
  natural_fetches_ = natural_ends_ = 0;
  natural_loaders_.clear();
  if (user_epochs_ && end != EpochEnd::user_epoch) return;
  Boundary decision;
  decision.kind = DecisionKind::epoch_turn;
  decision.time_ns = time_ns;
  decision.sequence = sequence;
  decision.loader = loader;
  decision.end = end;
  put(decision);
}

// A step ended by itself, not for want of what should have ended it: what it had is what a step of
// this loop has.
void BoundaryFinder::finish_turn() {
  run_ = 0;
  turns_.see_turn(natural_fetches_, natural_ends_, natural_loaders_);
  natural_fetches_ = natural_ends_ = 0;
  natural_loaders_.clear();
}

}  // namespace gpuutil
