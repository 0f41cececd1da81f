// Changes that guard the run: they gain no time, so no trial could keep them. Made at once where the
// finding that asks for them is a danger.
#include <utility>

#include "tune/controller.h"

namespace gpuutil {

LedgerRow Controller::row_of(const Proposal& proposal) {
  LedgerRow row;
  row.changes = proposal.changes;
  row.finding = proposal.finding;
  row.exactness = proposal.exactness;
  row.exactness_reason = proposal.exactness_reason;
  row.reason = proposal.reason;
  row.recipe = recipe(proposal.changes);
  row.protective = proposal.protective;
  return row;
}

// Waits for nothing that a measurement waits for: neither quiet CPUs nor a budget. What the hands
// cannot do, and what the user takes back, is not done again unasked.
std::optional<Command> Controller::guard() {
  if (!features_ || !features_->loader || features_->ranks > 1 || !consistent(*features_)) {
    return std::nullopt;
  }
  if (!by_hand_.empty() && by_hand_.front().protective) {
    const Proposal proposal = by_hand_.front();
    by_hand_.erase(by_hand_.begin());
    if (starts_here(proposal)) return put_up(proposal);
  }
  if (!features_fresh_) return std::nullopt;
  for (const OfferSearch::Wish& wish : search_of(*features_).offers.wishes(*features_, findings_)) {
    const Proposal& proposal = wish.proposal;
    if (!proposal.protective || !wish.refusal.empty()) continue;
    if (!policy_.allows(proposal.exactness) || vetoed(proposal.changes.front().remedy)) continue;
    return put_up(proposal);
  }
  return std::nullopt;
}

std::optional<Command> Controller::put_up(const Proposal& proposal) {
  LedgerRow row = row_of(proposal);
  row.step = step_;
  return send(Owner::guard, CommandKind::apply, ledger_.add(std::move(row)), proposal.reason);
}

}  // namespace gpuutil
