// What the hands' side said about each loader, and how many batches each has delivered in the current pass: events
// do not carry the size of a batch, the loader's facts do. Engine, under its mutex.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "profile/features.h"
#include "profile/turn_book.h"
#include "record/event.h"
#include "report/summary.h"

namespace gpuutil {

class LoaderBook {
 public:
  void set(LoaderFacts facts);
  void remove(uint32_t id);
  const LoaderFacts* find(uint32_t id) const;
  bool is_gone(uint32_t id) const;
  std::vector<LoaderName> names() const;
  // Of all loaders.
  std::vector<int32_t> worker_pids() const;
  bool has_workers() const;

  // Of a loader, since its workers are persistent or not. Empty before the first turn.
  std::optional<TurnCost> turn_cost(uint32_t id) const;

  // Fills in the samples of a batch where the loader's facts tell them, and follows its passes.
  void complete(Event& event);

 private:
  struct Entry {
    LoaderFacts facts;
    TurnBook turns;
    int32_t delivered = 0;
    bool gone = false;
  };
  // A loader that is gone stays known for a while: events of it may still be on their way, and the ledger and the
  // recipe name it.
  std::map<uint32_t, Entry> loaders_;
};

}  // namespace gpuutil
