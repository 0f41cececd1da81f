// Which thread trains (it ends steps), which ones only run autograd nodes for it, and which do work
// of their own. Learnt from the evidence, the strongest first: mon.step(), optimizer ends,
// backward, fetches. It may be learnt late, so the assembler replays what it still holds when the
// answer changes. Engine thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "record/event.h"

namespace gpuutil {

class ThreadRoles {
 public:
  // Returns whether the training thread is another one from this event on.
  bool see(uint32_t thread, EventKind kind);

  std::optional<uint32_t> training() const { return training_; }
  bool is_training(uint32_t thread) const { return training_ == thread; }
  // Runs autograd nodes and nothing else: a device thread of the autograd engine.
  bool is_autograd(uint32_t thread) const;

 private:
  struct Thread {
    uint32_t id = 0;
    int evidence = 0;       // strongest so far
    bool own_work = false;  // anything but autograd nodes
    int alone = 0;          // its evidence since the training thread last gave any
  };

  Thread& find(uint32_t thread);

  std::vector<Thread> threads_;
  std::optional<uint32_t> training_;
};

}  // namespace gpuutil
