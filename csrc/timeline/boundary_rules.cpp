// One rule for each kind of event on the training thread (DESIGN 4): see boundary_finder.h.
#include <algorithm>

#include "timeline/boundary_finder.h"

namespace gpuutil {

void BoundaryFinder::run(const Token& token) {
  if (token.remote) return on_remote(token);
  switch (token.kind) {
    case TokenKind::iter_begin:
      return on_iter_begin(token);
    case TokenKind::fetch_begin:
      return on_fetch_begin(token);
    case TokenKind::fetch_end:
      return on_fetch_end(token);
    case TokenKind::optimizer_end:
      return on_optimizer_end(token);
    case TokenKind::user_step:
      return on_user_step(token);
    case TokenKind::user_epoch: {
      resolve_ended(false);
      turn(token.time_ns, token.sequence + 1, primary_.value_or(0), EpochEnd::user_epoch);
      if (!decisions_.empty()) decisions_.back().user_number = token.value;
      return;
    }
    case TokenKind::backward_end:
      if (mode_ == Mode::backward) {
        cut(token.time_ns, token.sequence + 1);
        finish_turn();
      }
      return;
  }
}

uint32_t BoundaryFinder::fetches_of(uint32_t loader) const {
  return static_cast<uint32_t>(std::count_if(fetches_.begin(), fetches_.end(),
                                             [=](const Fetch& f) { return f.loader == loader; }));
}

// Batches of this step, in the pass that is under way.
uint32_t BoundaryFinder::training_fetches() const {
  return static_cast<uint32_t>(
      std::count_if(fetches_.begin(), fetches_.end(),
                    [this](const Fetch& f) { return f.sequence >= pass_sequence_; }));
}

void BoundaryFinder::drop_fetches(uint32_t loader, uint64_t from_sequence) {
  std::erase_if(fetches_,
                [=](const Fetch& f) { return f.loader == loader && f.sequence >= from_sequence; });
}

void BoundaryFinder::decide_evaluation(LoaderPass& pass, int64_t end_ns) {
  Boundary decision;
  decision.kind = DecisionKind::evaluation;
  decision.time_ns = pass.begin_ns;
  decision.end_ns = end_ns;
  put(decision);
  drop_fetches(pass.loader, pass.begin_sequence);
}

// The pass feeds training.
void BoundaryFinder::prove(LoaderPass& pass) {
  pass.proven = true;
  if (pass.seen_begin && pass.begin_sequence >= last_sequence_) {
    turn_marks_.push_back(pass.begin_sequence);
  }
  const LoaderPass* primary = primary_ ? passes_.find(*primary_) : nullptr;
  if (primary == nullptr || primary->exhausted) primary_ = pass.loader;
  if (primary_ == pass.loader && pass.interrupted) {
    turn(pass.begin_ns, pass.begin_sequence, pass.loader, EpochEnd::new_iterator);
  }
  pass.interrupted = false;
}

// A training pass ended. Did the step under way end with it, or is its optimizer end still to come
// (a loop that fetches one batch ahead, a last accumulation flushed after the loop)?
void BoundaryFinder::resolve_ended(bool step_goes_on) {
  if (!ended_) return;
  const Ended ended = *ended_;
  ended_.reset();
  if (!step_goes_on) {
    cut(ended.begin_ns, ended.begin_sequence);
    run_ = 0;
  }
  turn(ended.token.time_ns, ended.token.sequence + 1, ended.token.subject, EpochEnd::exhausted);
}

void BoundaryFinder::on_iter_begin(const Token& token) {
  if (open_fetch_ && open_fetch_->subject != token.subject)
    return;  // a loader inside a loader's fetch
  open_fetch_.reset();
  resolve_ended(false);
  LoaderPass* old = passes_.find(token.subject);
  if (old != nullptr && !old->proven && !old->exhausted) {
    // Given up without training on it: an evaluation that was cut short, or a look at one batch.
    if (fetches_of(old->loader) >= 2) decide_evaluation(*old, token.time_ns);
    drop_fetches(old->loader, old->begin_sequence);
  }
  if (mode_ == Mode::fetch && old != nullptr && old->proven && fetches_of(token.subject) > 0) {
    cut(token.time_ns, token.sequence);
    finish_turn();
  }
  passes_.begin(token.subject, token.time_ns, token.sequence);
}

void BoundaryFinder::on_fetch_begin(const Token& token) {
  if (open_fetch_ && open_fetch_->subject != token.subject) return;
  resolve_ended(false);
  LoaderPass& pass = pass_of(token);
  open_fetch_ = token;
  if (!pass.proven) return;
  for (LoaderPass& other : passes_.all()) {  // an evaluation that was cut short
    if (!other.proven && !other.exhausted && other.all_no_grad && fetches_of(other.loader) > 0) {
      decide_evaluation(other, token.time_ns);
    }
  }
  if (mode_ == Mode::fetch) {
    if (fetches_of(token.subject) == 0) return;
    cut(token.time_ns, token.sequence);
    finish_turn();
  } else if (mode_ == Mode::optimizer) {
    if (run_ > 0 && last_end_) {  // fewer ends than usual
      cut(last_end_->time_ns, last_end_->sequence + 1);
      finish_turn();
    }
    const uint32_t usual = turns_.cycle().fetches;
    // A loader that was not read in this step yet may belong to it: several are read in step.
    if (usual == 0 || training_fetches() < usual || fetches_of(token.subject) == 0) return;
    for (LoaderPass& other : passes_.all()) {
      if (!other.proven && fetches_of(other.loader) >= 2) decide_evaluation(other, token.time_ns);
    }
    if (training_fetches() >= usual)
      cut(token.time_ns, token.sequence);  // its optimizer was skipped
  }
}

// The pass that a fetch belongs to.
LoaderPass& BoundaryFinder::pass_of(const Token& token) {
  LoaderPass* pass = passes_.find(token.subject);
  if (pass != nullptr && !pass->exhausted) return *pass;
  const bool resumed =
      pass != nullptr && pass->interrupted;  // evaluated on the training loader, in between
  LoaderPass& fresh = passes_.begin(token.subject, token.time_ns, token.sequence);
  fresh.seen_begin = false;
  if (resumed) {
    fresh.interrupted = false;
    fresh.proven = true;
  }
  return fresh;
}

void BoundaryFinder::on_fetch_end(const Token& token) {
  if (open_fetch_ && open_fetch_->subject != token.subject) return;
  const Token begin = open_fetch_.value_or(token);
  open_fetch_.reset();
  LoaderPass& pass = pass_of(begin);
  if ((token.flags & kFetchExhausted) != 0) {
    on_exhausted(token, begin.time_ns, begin.sequence);
    return;
  }
  if ((token.flags & kFetchError) != 0) return;
  ++pass.fetches;
  pass.all_no_grad = pass.all_no_grad && (token.flags & kFetchNoGrad) != 0;
  const int64_t samples = std::max<int64_t>(0, token.value);
  fetches_.push_back({begin.time_ns, token.time_ns, begin.sequence, samples, token.subject});
  if (!pass.proven && mode_ == Mode::fetch && !optimizers_seen_ && !pass.all_no_grad) prove(pass);
}

void BoundaryFinder::on_exhausted(const Token& token, int64_t begin_ns, uint64_t begin_sequence) {
  LoaderPass& pass = *passes_.find(token.subject);
  pass.exhausted = true;
  if (!pass.proven) {
    if (pass.fetches > 0) decide_evaluation(pass, token.time_ns);
    return;
  }
  turn_marks_.push_back(begin_sequence);
  if (primary_ != token.subject) return;
  if (mode_ == Mode::optimizer && training_fetches() > 0) {
    ended_ = Ended{token, begin_ns, begin_sequence};
  } else {
    turn(token.time_ns, token.sequence + 1, token.subject, EpochEnd::exhausted);
  }
}

// A step ends, or part of one: what was fetched for it is training, and what was not is evaluation.
void BoundaryFinder::attribute(const Token& token) {
  for (LoaderPass& pass : passes_.all()) {
    if (pass.proven || pass.exhausted || fetches_of(pass.loader) == 0) continue;
    const std::optional<int64_t> end_ns = evaluated_until(pass);
    if (end_ns) {
      decide_evaluation(pass, std::min(*end_ns, token.time_ns));
    } else {
      prove(pass);
    }
  }
}

// Where the evaluation that `pass` is ends, if it is one that was cut short: a loader that does not
// usually feed the steps was read, and this step has a batch of one that does.
std::optional<int64_t> BoundaryFinder::evaluated_until(const LoaderPass& pass) {
  if (turns_.feeds(pass.loader).value_or(false)) return std::nullopt;
  const bool in_this_step = pass.begin_sequence >= last_sequence_;
  if (!in_this_step && fetches_of(pass.loader) < 2)
    return std::nullopt;  // begins to be read in step with another
  const Fetch* last = nullptr;
  for (const Fetch& f : fetches_) {
    if (f.loader == pass.loader) last = &f;
  }
  bool fed_before = false;
  for (const Fetch& f : fetches_) {
    const LoaderPass* other = passes_.find(f.loader);
    if (f.loader == pass.loader || other == nullptr) continue;
    const bool feeds = turns_.feeds(f.loader).value_or(other->proven);
    if (!feeds && !(pass.all_no_grad && !other->all_no_grad)) continue;
    if (f.sequence < last->sequence) {
      fed_before = true;  // a loop that fetches ahead
      continue;
    }
    return other->begin_sequence > last->sequence ? other->begin_ns : f.begin_ns;
  }
  const bool never_feeds = turns_.feeds(pass.loader).has_value();
  if (fed_before && never_feeds) return last->end_ns;
  return std::nullopt;
}

// More batches than one step has, at the begin of a pass that is known to train only now: the first
// steps of it were skipped, unless the loop fetches ahead (batches of one loader with next to
// nothing done between them).
void BoundaryFinder::close_skipped(int64_t now_ns) {
  const uint32_t usual = turns_.cycle().fetches;
  if (usual == 0 || fetches_.size() <= usual) return;
  std::vector<Fetch> batches;
  for (const Fetch& f : fetches_) {
    if (f.sequence >= pass_sequence_) batches.push_back(f);
  }
  if (batches.size() <= usual) return;
  const int64_t work_ns = now_ns - batches.back().end_ns;
  size_t ahead = 0;
  while (ahead + 1 < batches.size() && batches[ahead].loader == batches[ahead + 1].loader &&
         4 * (batches[ahead + 1].begin_ns - batches[ahead].end_ns) < work_ns) {
    ++ahead;
  }
  for (size_t first = 0, i = usual + ahead; i < batches.size(); first = i, i += usual) {
    const bool again = std::any_of(batches.begin() + static_cast<std::ptrdiff_t>(first),
                                   batches.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Fetch& f) { return f.loader == batches[i].loader; });
    if (!again) return;  // several loaders are read in step
    cut(batches[i].begin_ns, batches[i].sequence);
  }
}

void BoundaryFinder::on_optimizer_end(const Token& token) {
  open_fetch_.reset();  // its end was lost
  resolve_ended(true);
  attribute(token);
  for (LoaderPass& pass : remote_passes_.all()) pass.proven = pass.proven || pass.fetches > 0;
  if (mode_ == Mode::optimizer) close_skipped(token.time_ns);
  ends_.push_back(token);
  if (mode_ != Mode::optimizer) return;
  const Cycle& cycle = turns_.cycle();
  if (!turns_.ignored(token.subject)) {
    if (token.subject == cycle.end_optimizer) {
      last_end_ = token;
      if (++run_ >= cycle.ends_per_step) {
        cut(token.time_ns, token.sequence + 1);
        finish_turn();
      }
    } else if (run_ > 0 && last_end_) {
      cut(last_end_->time_ns, last_end_->sequence + 1);
      finish_turn();
    }
  }
  if (ends_.size() > 2 * cycle.optimizer_ends + 2) {
    turns_.relearn();
    for (const Token& end : ends_) turns_.see_optimizer(end.subject);
    if (!turns_.settled()) mode_ = Mode::unknown;
  }
}

// A pass on another thread that optimizer ends fell into was for training, where the training
// thread reads no loader itself. It ends a little early, by what is prefetched.
void BoundaryFinder::on_remote(const Token& token) {
  if (token.kind == TokenKind::iter_begin) {
    remote_passes_.begin(token.subject, token.time_ns, token.sequence);
    return;
  }
  if (token.kind != TokenKind::fetch_end) return;
  LoaderPass* pass = remote_passes_.find(token.subject);
  if (pass == nullptr || pass->exhausted) {
    pass = &remote_passes_.begin(token.subject, token.time_ns, token.sequence);
  }
  if ((token.flags & kFetchExhausted) == 0) {
    pass->fetches += (token.flags & kFetchError) == 0 ? 1 : 0;
    return;
  }
  pass->exhausted = true;
  if (pass->proven && !primary_) {
    turn(token.time_ns, token.sequence + 1, token.subject, EpochEnd::exhausted);
  }
}

void BoundaryFinder::on_user_step(const Token& token) {
  open_fetch_.reset();
  resolve_ended(true);
  attribute(token);
  cut(token.time_ns, token.sequence + 1);
  finish_turn();
}

}  // namespace gpuutil
