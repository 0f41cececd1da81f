// A value that the user names: no model is asked, it is applied, measured once and kept.
#include "tune/controller.h"

namespace gpuutil {

std::string Controller::request_value(const std::string& remedy, int64_t value) {
  if (stopped_) return "tuning is off: " + stop_reason_;
  if (!features_ || !features_->loader) return "nothing is known about the run yet";
  const LoaderFacts& loader = *features_->loader;
  if (features_->ranks > 1) return "more than one rank: observe and advise";
  if (const RemedyOffer* offer = find_offer(loader, remedy)) {
    if (value == offer->to) return request_apply(remedy);
    return remedy + " is " + std::to_string(offer->value) + "; " + std::to_string(offer->to) + " is what can be asked for";
  }
  Proposal proposal;
  const auto change = [&](const std::string& id, uint32_t subject, int64_t from, int64_t to) {
    proposal.changes.push_back({id, subject, from, to});
  };
  if (remedy == "main_threads") {
    if (value < 1) return "main_threads needs at least 1";
    change(remedy, 0, features_->main_threads, value);
    proposal.exactness = features_->device_is_host ? Exactness::rounding : Exactness::exact;
  } else if (!loader.workers_changeable) {
    return loader.workers_reason;
  } else if (remedy == "loader_workers") {
    if (value < 0) return "loader_workers needs at least 0";
    change(remedy, loader.id, loader.workers, value);
    if (loader.prefetch == 0 && value > 0) change("loader_prefetch", loader.id, 0, 2);
    if (loader.draws_random != std::optional<bool>(false)) {
      proposal.exactness = Exactness::distribution;
      proposal.exactness_reason = loader.draws_random ? "items draw random numbers"
                                                      : "items may draw random numbers";
    }
  } else if (remedy == "loader_prefetch") {
    if (value < 1) return "loader_prefetch needs at least 1";
    if (loader.workers == 0) return "this loader has no workers to prefetch";
    change(remedy, loader.id, loader.prefetch, value);
  } else {
    return "no remedy is called " + remedy;
  }
  if (proposal.changes.front().from == value) return remedy + " has that value already";
  proposal.reason = "asked for by hand";
  std::erase_if(vetoed_, [&](const Change& veto) { return veto.remedy == remedy; });
  by_hand_.push_back(std::move(proposal));
  return "";
}

}  // namespace gpuutil
