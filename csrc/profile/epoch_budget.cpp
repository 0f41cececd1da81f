#include "profile/epoch_budget.h"

#include <algorithm>
#include <array>

#include "profile/share.h"

namespace gpuutil {
namespace {

constexpr std::array<Phase, 6> kSplit = {Phase::host_to_device, Phase::forward,   Phase::backward,
                                         Phase::optimizer,      Phase::sync_wait, Phase::other};

PhaseTimes minus(PhaseTimes whole, const PhaseTimes& part) {
  for (size_t i = 0; i < kPhaseCount; ++i) whole.ns[i] -= part.ns[i];
  return whole;
}

int64_t split_total(const PhaseTimes& times) {
  int64_t sum = 0;
  for (Phase phase : kSplit) sum += times[phase];
  return sum;
}

}  // namespace

bool needs_observer(Phase phase) {
  return phase != Phase::other && std::find(kSplit.begin(), kSplit.end(), phase) != kSplit.end();
}

std::optional<int64_t> EpochAccount::phase_ns(Phase phase) const {
  if (!split_known && (needs_observer(phase) || phase == Phase::other)) return std::nullopt;
  return phases[phase];
}

void EpochBudget::add(const Step& step) {
  const PhaseTimes own = minus(step.phases, step.earlier);
  if (step.sampled) {
    ++sampled_steps_;
    sampled_ += own;
    any_ += own;
    if (step.marks == kStepClean) clean_ += own;
    return;
  }
  PhaseTimes known = own;
  known[Phase::other] = 0;
  known_ += known;
  if (step.marks == kStepClean || step.marks == kStepFirst) {
    unsampled_other_ns_ += own[Phase::other];
    ++unsampled_steps_;
  } else {
    odd_other_ns_.push_back(own[Phase::other]);
  }
}

EpochAccount EpochBudget::close(const EpochTurn& turn) {
  EpochAccount account;
  account.turn = turn;
  account.phases = sampled_;
  account.phases += known_;
  account.phases += turn.tail;  // what is `other` in a tail is no step's work: it stays
  account.sampled_steps = sampled_steps_;
  const int64_t observed_ns = sampled_.total() + (turn.tail_sampled ? turn.tail.total() : 0);
  if (turn.wall_ns() > 0) {
    account.coverage_ratio = static_cast<double>(observed_ns) / static_cast<double>(turn.wall_ns());
  }

  if (split_total(clean_) > 0) {
    latest_ = clean_;
  } else if (!latest_ && split_total(any_) > 0) {
    latest_ = any_;
  }
  // An outlier or a turn holds one step's work; what it has beyond that was seen by nobody and
  // stays `other`.
  int64_t divisible_ns = unsampled_other_ns_;
  for (int64_t other_ns : odd_other_ns_) {
    const int64_t usual_ns =
        unsampled_steps_ > 0 ? unsampled_other_ns_ / unsampled_steps_ : other_ns;
    divisible_ns += std::min(other_ns, usual_ns);
    account.phases[Phase::other] += other_ns - std::min(other_ns, usual_ns);
  }
  if (latest_) {
    std::array<int64_t, kSplit.size()> weights{};
    for (size_t i = 0; i < kSplit.size(); ++i) weights[i] = (*latest_)[kSplit[i]];
    const std::vector<int64_t> parts = share_out(divisible_ns, weights);
    for (size_t i = 0; i < kSplit.size(); ++i) account.phases[kSplit[i]] += parts[i];
    account.split_known = true;
  } else {
    account.phases[Phase::other] += divisible_ns;
  }

  const std::optional<PhaseTimes> latest = latest_;
  *this = EpochBudget();
  latest_ = latest;
  return account;
}

}  // namespace gpuutil
