#include "engine/loader_book.h"

#include <algorithm>
#include <utility>

namespace gpuutil {
namespace {
constexpr size_t kMaxGone = 64;
}

void LoaderBook::set(LoaderFacts facts) {
  Entry& entry = loaders_[facts.id];
  if (entry.facts.persistent != facts.persistent) entry.turns = TurnBook{};
  entry.facts = std::move(facts);
}

void LoaderBook::remove(uint32_t id) {
  const auto found = loaders_.find(id);
  if (found == loaders_.end()) return;
  Entry& entry = found->second;
  entry.gone = true;
  entry.facts.workers_changeable = false;
  entry.facts.workers_reason = "the loader is gone";
  entry.facts.worker_pids.clear();
  size_t gone = 0;
  for (const auto& [other, one] : loaders_) gone += one.gone ? 1 : 0;
  if (gone <= kMaxGone) return;
  for (auto oldest = loaders_.begin(); oldest != loaders_.end(); ++oldest) {
    if (!oldest->second.gone) continue;
    loaders_.erase(oldest);
    return;
  }
}

const LoaderFacts* LoaderBook::find(uint32_t id) const {
  const auto found = loaders_.find(id);
  return found == loaders_.end() ? nullptr : &found->second.facts;
}

std::optional<TurnCost> LoaderBook::turn_cost(uint32_t id) const {
  const auto found = loaders_.find(id);
  return found == loaders_.end() ? std::nullopt : found->second.turns.cost();
}

bool LoaderBook::is_gone(uint32_t id) const {
  const auto found = loaders_.find(id);
  return found != loaders_.end() && found->second.gone;
}

std::vector<LoaderName> LoaderBook::names() const {
  std::vector<LoaderName> names;
  for (const auto& [id, entry] : loaders_) names.push_back({id, entry.facts.name});
  return names;
}

bool LoaderBook::has_workers() const {
  return std::any_of(loaders_.begin(), loaders_.end(),
                     [](const auto& entry) { return !entry.second.facts.worker_pids.empty(); });
}

std::vector<int32_t> LoaderBook::worker_pids() const {
  std::vector<int32_t> pids;
  for (const auto& [id, entry] : loaders_) {
    pids.insert(pids.end(), entry.facts.worker_pids.begin(), entry.facts.worker_pids.end());
  }
  return pids;
}

void LoaderBook::complete(Event& event) {
  if (event.kind < EventKind::iter_begin || event.kind > EventKind::fetch_end) return;
  const auto found = loaders_.find(event.subject);
  if (found == loaders_.end()) return;
  Entry& entry = found->second;
  entry.turns.observe(event);
  if (event.kind == EventKind::iter_end || event.kind == EventKind::fetch_begin) return;
  if (event.kind == EventKind::iter_begin || (event.flags & kFetchBatch) == 0) {
    entry.delivered = 0;
    return;
  }
  ++entry.delivered;
  if (event.value != 0) return;
  const bool last = entry.delivered == entry.facts.batches;
  event.value = last && entry.facts.last_batch_size > 0 ? entry.facts.last_batch_size
                                                        : entry.facts.batch_size;
}

}  // namespace gpuutil
