// Which of the offered changes to try next: those that a finding asks for, each once (DESIGN 8). Remembers what was
// tried. One for each loader; used by the controller.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "diagnose/finding.h"
#include "profile/features.h"
#include "tune/ledger.h"

namespace gpuutil {

class OfferSearch {
 public:
  // Unordered; what is possible and what is refused alike: a refusal's proposal carries its reason in `refusal`.
  struct Wish {
    Proposal proposal;
    std::string refusal;
  };
  // Each finding is answered by the first of its remedies that is open here.
  std::vector<Wish> wishes(const Features& features, const std::vector<Finding>& findings) const;

  void concluded(const Proposal& proposal, Outcome outcome);
  void forget_undecided();
  void forget() { tried_.clear(); }
  bool has_tried() const { return !tried_.empty(); }

 private:
  bool tried(const Change& change) const;

  struct Tried {
    Change change;
    bool undecided = false;
  };
  std::vector<Tried> tried_;
};

// The proposal that an offer amounts to, without a gain: what is asked for by hand.
Proposal offer_proposal(const Features& features, const RemedyOffer& offer);

// The offer for a remedy; nullptr where there is none.
const RemedyOffer* find_offer(const LoaderFacts& loader, const std::string& remedy);

}  // namespace gpuutil
