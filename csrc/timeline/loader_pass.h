// The current pass over each loader: from its iter_begin to its exhaustion, or to the next
// iter_begin. A pass is training once an optimizer end follows one of its fetches. Plain data;
// engine thread only.
#pragma once

#include <cstdint>
#include <vector>

namespace gpuutil {

struct LoaderPass {
  uint32_t loader = 0;
  int64_t begin_ns = 0;
  uint64_t begin_sequence = 0;
  uint32_t fetches = 0;
  bool seen_begin = true;   // false: its iter_begin was before we attached
  bool all_no_grad = true;  // of its fetches so far
  bool proven = false;      // feeds training
  bool exhausted = false;
  bool interrupted = false;  // a training pass of this loader was under way when this one began
};

class PassBook {
 public:
  LoaderPass* find(uint32_t loader) {
    for (LoaderPass& p : passes_) {
      if (p.loader == loader) return &p;
    }
    return nullptr;
  }
  // A new pass of `loader`; what the old one was decides whether a training pass was interrupted.
  LoaderPass& begin(uint32_t loader, int64_t time_ns, uint64_t sequence) {
    LoaderPass fresh;
    fresh.loader = loader;
    fresh.begin_ns = time_ns;
    fresh.begin_sequence = sequence;
    if (LoaderPass* old = find(loader)) {
      fresh.interrupted = old->proven ? !old->exhausted : old->interrupted;
      return *old = fresh;
    }
    if (passes_.size() >= kMaxLoaders) passes_.erase(passes_.begin());
    passes_.push_back(fresh);
    return passes_.back();
  }
  std::vector<LoaderPass>& all() { return passes_; }

 private:
  static constexpr size_t kMaxLoaders =
      64;  // loops that make a loader an epoch leave old ones behind
  std::vector<LoaderPass> passes_;
};

}  // namespace gpuutil
