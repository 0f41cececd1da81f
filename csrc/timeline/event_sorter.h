// Brings the events of all threads into one order by time. Threads are drained one after another,
// so what one of them recorded while the others were being read comes with the next drain: only
// events up to the time at which a drain began are complete, and the rest waits for the next one
// (one slice, about 50 ms, at most). Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/event.h"

namespace gpuutil {

struct ThreadEvent {
  Event event;
  uint32_t thread = 0;
};

class EventSorter {
 public:
  // Events of one thread come in order; a time that runs backwards is lifted to the thread's
  // latest.
  void push(uint32_t thread, const Event& event);
  // Moves every event up to `complete_until_ns` to `out`, in order of time; ties keep the order of
  // arrival.
  void take(int64_t complete_until_ns, std::vector<ThreadEvent>& out);
  size_t size() const { return waiting_.size(); }

 private:
  std::vector<ThreadEvent> waiting_;
  std::unordered_map<uint32_t, int64_t> latest_ns_;
  uint32_t last_thread_ = 0;
  int64_t* last_latest_ = nullptr;  // of last_thread_: nearly all events come from one
  int64_t taken_until_ns_ = INT64_MIN;
  bool sorted_ = true;
};

}  // namespace gpuutil
