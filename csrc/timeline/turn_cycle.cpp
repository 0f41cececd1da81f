#include "timeline/turn_cycle.h"

#include <algorithm>
#include <map>

namespace gpuutil {
namespace {

constexpr size_t kHistory = 64;
constexpr size_t kTurns = 16;
constexpr double kMajority = 0.6;

bool has(const std::vector<uint32_t>& list, uint32_t id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

// The most frequent value and its share.
std::pair<uint32_t, double> mode_of(const std::vector<uint32_t>& values) {
  std::map<uint32_t, size_t> counts;
  for (uint32_t v : values) ++counts[v];
  std::pair<uint32_t, double> best{0, 0.0};
  for (const auto& [value, n] : counts) {
    const double share = static_cast<double>(n) / static_cast<double>(values.size());
    if (share > best.second) best = {value, share};
  }
  return best;
}

}  // namespace

size_t TurnCycle::count(uint32_t id) const {
  return static_cast<size_t>(
      std::count_if(ends_.begin(), ends_.end(), [id](const End& e) { return e.id == id; }));
}

bool TurnCycle::ignored(uint32_t id) const { return has(ignored_, id); }

void TurnCycle::see_fetch(uint32_t loader) {
  fetched_ = true;
  ++next_.fetches;
  if (!has(next_.loaders, loader)) next_.loaders.push_back(loader);
}

void TurnCycle::see_optimizer(uint32_t id) {
  if (!has(known_, id)) {
    known_.push_back(id);
    if (known_.size() > kHistory) known_.erase(known_.begin());
    if (settled_ && !many_) {
      // Forget what was before: either the newcomer joins the turn (and everyone is seen again
      // before it returns) or it replaces the others.
      settled_ = false;
      ends_.clear();
      turns_.clear();
      newcomer_ = id;
      ends_since_unsettled_ = 0;
    }
  }
  next_.id = id;
  ends_.push_back(next_);
  next_ = End();
  if (ends_.size() > kHistory) ends_.pop_front();
  ++ends_since_unsettled_;
  if (settled_) return;
  if (fetched_ && known_.size() > kManyOptimizers && ends_since_unsettled_ > kManyOptimizers) {
    std::vector<uint32_t> recent;
    for (const End& e : ends_) {
      if (!has(recent, e.id)) recent.push_back(e.id);
    }
    many_ = recent.size() > kManyOptimizers;
  }
  if (many_ || enough()) settle();
}

// Every optimizer came twice and, where there are fetches, two whole groups of ends lie between
// them.
bool TurnCycle::enough() const {
  if (newcomer_ && count(*newcomer_) >= 2) return true;
  if (ends_since_unsettled_ >= (newcomer_ ? kLongestTurn : 2 * kLongestTurn)) return true;
  if (newcomer_ || ends_.size() < 3) return false;
  size_t groups = 0;
  for (size_t i = 1; i < ends_.size(); ++i) groups += ends_[i].fetches > 0 ? 1 : 0;
  if (fetched_ && groups < 2) return false;
  return std::all_of(ends_.begin(), ends_.end(), [this](const End& e) { return count(e.id) >= 2; });
}

void TurnCycle::settle() {
  settled_ = true;
  const bool closed = newcomer_ && ends_.size() > 2 && ends_.front().id == ends_.back().id;
  newcomer_.reset();
  if (many_ || ends_.empty()) return;
  choose_end(closed);
}

void TurnCycle::choose_end(bool closed) {
  std::vector<uint32_t> ids;  // in order of first sight
  for (const End& e : ends_) {
    if (!has(ids, e.id)) ids.push_back(e.id);
  }
  // One that came once in a whole long look-ahead is no part of the cycle.
  ignored_.clear();
  if (ends_.size() >= kLongestTurn) {
    for (uint32_t id : ids) {
      if (count(id) * kLongestTurn <= ends_.size()) ignored_.push_back(id);
    }
    if (ignored_.size() == ids.size()) ignored_.clear();
    std::erase_if(ids, [this](uint32_t id) { return ignored(id); });
  }
  // The rarest ends the turn; of equals the one that a fetch follows most often; else the last at
  // first sight. `closed`: the last end begins the next turn, it does not count.
  const auto times = [&](uint32_t id) {
    return count(id) - (closed && ends_.back().id == id ? 1 : 0);
  };
  size_t rarest = SIZE_MAX;
  for (uint32_t id : ids) rarest = std::min(rarest, times(id));
  uint32_t end = ids.back();
  int64_t best = -1;
  for (uint32_t id : ids) {
    if (times(id) > rarest + std::max<size_t>(1, rarest / 4)) continue;
    int64_t followed = 0, total = 0;
    for (size_t i = 0; i + 1 < ends_.size(); ++i) {
      if (ends_[i].id != id) continue;
      ++total;
      if (ends_[i + 1].fetches > 0) ++followed;
    }
    const int64_t score = total == 0 ? 0 : 100 * followed / total;
    if (score >= best) {
      best = score;
      end = id;
    }
  }
  cycle_.end_optimizer = end;
  cycle_.learnt = true;

  // Runs of it, cut by any other optimizer or by a fetch. A run still open at the end of the
  // history tells nothing.
  std::vector<uint32_t> runs;
  uint32_t run = 0;
  for (const End& e : ends_) {
    if (ignored(e.id)) continue;
    if (run > 0 && (e.id != end || e.fetches > 0)) {
      runs.push_back(run);
      run = 0;
    }
    if (e.id == end) ++run;
  }
  if (runs.size() > 2) runs.erase(runs.begin());  // the first may have been joined in the middle
  cycle_.ends_per_step = 1;
  const bool alone = ids.size() == 1;
  if (!runs.empty() && (!alone || fetched_)) {
    const auto [length, share] = mode_of(runs);
    if (share >= 0.8 && length <= kLongestTurn) cycle_.ends_per_step = length;
  }
  const size_t of_end = std::max<size_t>(1, times(end));
  const size_t all = (ends_.size() - (closed ? 1 : 0)) * cycle_.ends_per_step;
  cycle_.optimizer_ends = static_cast<uint32_t>(std::max<size_t>(1, (all + of_end / 2) / of_end));

  // What the ends so far say about fetches per turn; real turns refine it.
  if (turns_.empty()) {
    std::vector<uint32_t> fetches;
    uint32_t sum = 0, in_run = 0;
    for (const End& e : ends_) {
      sum += e.fetches;
      in_run = e.id == end ? in_run + 1 : in_run;
      if (in_run == cycle_.ends_per_step) {
        fetches.push_back(sum);
        sum = in_run = 0;
      }
    }
    cycle_.fetches = 0;
    if (fetches.size() >= 2) {
      const auto [n, share] = mode_of(fetches);
      if (share >= kMajority) cycle_.fetches = n;
    }
  }
}

void TurnCycle::see_turn(uint32_t fetches, uint32_t optimizer_ends,
                         const std::vector<uint32_t>& loaders) {
  turns_.push_back({fetches, optimizer_ends, loaders});
  if (turns_.size() > kTurns) turns_.pop_front();
  learn_counts();
}

void TurnCycle::learn_counts() {
  const size_t n = turns_.size();
  if (n < 3) return;
  std::vector<uint32_t> values;
  for (const Turn& t : turns_) values.push_back(t.optimizer_ends);
  if (const auto [ends, share] = mode_of(values); share >= kMajority) {
    cycle_.optimizer_ends = std::max(1u, ends);
  }
  // Three alike in a row are believed at once: the user changed the accumulation.
  const uint32_t last = turns_[n - 1].fetches;
  if (turns_[n - 2].fetches == last && turns_[n - 3].fetches == last) {
    cycle_.fetches = last;
    return;
  }
  values.clear();
  for (const Turn& t : turns_) values.push_back(t.fetches);
  const auto [value, share] = mode_of(values);
  cycle_.fetches = share >= kMajority ? value : 0;
}

std::optional<bool> TurnCycle::feeds(uint32_t loader) const {
  size_t n = 0;
  if (turns_.size() < 2) {  // no turns yet: the optimizer ends of the look-ahead
    size_t fed = 0;
    for (const End& e : ends_) {
      fed += e.fetches > 0 ? 1 : 0;
      n += has(e.loaders, loader) ? 1 : 0;
    }
    if (fed < 2) return std::nullopt;
    return 2 * n >= fed;
  }
  for (const Turn& t : turns_) n += has(t.loaders, loader) ? 1 : 0;
  return 2 * n >= turns_.size();
}

void TurnCycle::relearn() {
  settled_ = many_ = false;
  known_.clear();
  ignored_.clear();
  ends_.clear();
  turns_.clear();
  newcomer_.reset();
  ends_since_unsettled_ = 0;
}

}  // namespace gpuutil
