#include "tune/offer_search.h"

#include <algorithm>

#include "tune/loader_search.h"

namespace gpuutil {

const RemedyOffer* find_offer(const LoaderFacts& loader, const std::string& remedy) {
  const auto at = std::find_if(loader.offers.begin(), loader.offers.end(),
                               [&](const RemedyOffer& offer) { return offer.remedy == remedy; });
  return at == loader.offers.end() ? nullptr : &*at;
}

Proposal offer_proposal(const Features& features, const RemedyOffer& offer) {
  const LoaderFacts& loader = *features.loader;
  Proposal proposal;
  proposal.changes.push_back(Change{offer.remedy, offer.of_process ? 0 : loader.id, offer.value, offer.to});
  proposal.exactness = offer.exactness;
  proposal.exactness_reason = offer.exactness_reason;
  proposal.at_epoch_turn = offer.at_epoch_turn;
  proposal.protective = offer.protective;
  proposal.by_hand = offer.by_hand;
  // What workers have in hand was made the old way; a pass that began the new way has nothing of the old one.
  proposal.settle_steps = offer.at_epoch_turn ? 0 : loader.workers * loader.prefetch + 2;
  proposal.cheap_flip = loader.workers == 0 && !offer.at_epoch_turn;
  proposal.burst_from = proposal.burst_to = burst_steps(loader.workers);
  return proposal;
}

std::vector<OfferSearch::Wish> OfferSearch::wishes(const Features& features,
                                                   const std::vector<Finding>& findings) const {
  std::vector<Wish> result;
  for (const Finding& finding : findings) {
    for (const std::string& remedy : finding.remedies) {
      const RemedyOffer* offer = find_offer(*features.loader, remedy);
      if (offer == nullptr || offer->value == offer->to) continue;
      Wish wish{offer_proposal(features, *offer), offer->refusal};
      if (tried(wish.proposal.changes.front())) continue;
      // A guard is for dangers, not for what is merely worth knowing.
      if (wish.proposal.protective && severity(finding) == Severity::info) continue;
      wish.proposal.finding = finding.id;
      wish.proposal.reason = finding.title;
      wish.proposal.gain_low = finding.gain_ratio.low;
      wish.proposal.gain_high = finding.gain_ratio.high;
      wish.proposal.confidence = finding.confidence;
      const bool possible = wish.refusal.empty();
      result.push_back(std::move(wish));
      if (possible) break;
    }
  }
  return result;
}

bool OfferSearch::tried(const Change& change) const {
  return std::any_of(tried_.begin(), tried_.end(),
                     [&](const Tried& one) { return one.change == change; });
}

void OfferSearch::concluded(const Proposal& proposal, Outcome outcome) {
  const bool undecided = outcome == Outcome::inconclusive;
  for (const Change& change : proposal.changes) tried_.push_back({change, undecided});
}

void OfferSearch::forget_undecided() {
  std::erase_if(tried_, [](const Tried& one) { return one.undecided; });
}

}  // namespace gpuutil
