// What the hands' side could change in this run, beside the numbers that the loader search moves. A rule says what is
// wrong and which remedies answer it; an offer says that one of them is possible here, and what it would touch.
#pragma once

#include <cstdint>
#include <string>

#include "profile/exactness.h"

namespace gpuutil {

struct RemedyOffer {
  std::string remedy;      // "loader_batch_fetch"
  int64_t value = 0;       // now
  int64_t to = 0;          // offered; the same as `value` where nothing is left to offer
  Exactness exactness = Exactness::exact;
  std::string exactness_reason;
  bool at_epoch_turn = false;  // takes effect when the next pass over the loader begins
  std::string refusal;         // why it cannot be done here; empty where it can
  // Guards the run instead of making it faster: no trial could show a gain. Made without one where its finding
  // is a danger.
  bool protective = false;
  bool by_hand = false;     // never made unasked: advice with the call that makes it
  bool of_process = false;  // changes this process and not the loader: it outlives the loader, and is undone without it

  bool operator==(const RemedyOffer&) const = default;
};

}  // namespace gpuutil
