#include "timeline/event_sorter.h"

#include <algorithm>

namespace gpuutil {

void EventSorter::push(uint32_t thread, const Event& event) {
  if (last_latest_ == nullptr || last_thread_ != thread) {
    last_thread_ = thread;
    last_latest_ = &latest_ns_.try_emplace(thread, INT64_MIN).first->second;
  }
  waiting_.push_back({event, thread});
  Event& copy = waiting_.back().event;
  copy.time_ns = std::max({copy.time_ns, *last_latest_, taken_until_ns_});
  *last_latest_ = copy.time_ns;
  if (waiting_.size() > 1 && copy.time_ns < waiting_[waiting_.size() - 2].event.time_ns)
    sorted_ = false;
}

void EventSorter::take(int64_t complete_until_ns, std::vector<ThreadEvent>& out) {
  if (!sorted_) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const ThreadEvent& a, const ThreadEvent& b) {
                       return a.event.time_ns < b.event.time_ns;
                     });
    sorted_ = true;
  }
  auto last = std::upper_bound(
      waiting_.begin(), waiting_.end(), complete_until_ns,
      [](int64_t time_ns, const ThreadEvent& e) { return time_ns < e.event.time_ns; });
  if (last == waiting_.begin()) return;
  taken_until_ns_ = std::prev(last)->event.time_ns;
  out.insert(out.end(), waiting_.begin(), last);
  waiting_.erase(waiting_.begin(), last);
}

}  // namespace gpuutil
