#include "diagnose/fetch_view.h"

#include <algorithm>

#include "diagnose/wording.h"

namespace gpuutil {

FetchView view_fetch(const Features& features) {
  FetchView fetch;
  const LoaderFacts& loader = *features.loader;
  if (loader.workers > 0) {
    fetch.missing = "batches are made in workers, where a fetch is not timed apart";
    return fetch;
  }
  const FetchCost& cost = loader.fetch;
  if (!cost.row_seconds || !cost.collate_seconds ||
      !(*cost.row_seconds + *cost.collate_seconds > 0)) {
    fetch.missing = "no fetch was timed apart";
    return fetch;
  }
  fetch.shortened =
      std::any_of(loader.offers.begin(), loader.offers.end(), [](const RemedyOffer& offer) {
        return offer.remedy == "loader_batch_fetch" && offer.value != 0;
      });
  fetch.row_seconds = std::max(0.0, *cost.row_seconds);
  fetch.collate_seconds = std::max(0.0, *cost.collate_seconds);
  fetch.whole_seconds = fetch.row_seconds + fetch.collate_seconds;
  fetch.batches_per_step = std::max(1.0, features.micro_steps_per_step);
  fetch.batch_seconds = cost.batch_seconds;
  fetch.stack_seconds = cost.stack_seconds;
  return fetch;
}

double saved_share(const InputView& input, const FetchView& fetch, double saved) {
  if (!(saved > 0)) return 0;
  const double by_seconds = saved * fetch.batches_per_step / input.step_seconds;
  const double by_share = input.wait_ratio * std::min(1.0, saved / fetch.whole_seconds);
  return std::min(by_seconds, by_share);
}

void add_fetch_evidence(const FetchView& fetch, std::vector<Evidence>& evidence) {
  evidence.push_back({"row_seconds", fetch.row_seconds,
                      duration_text(fetch.row_seconds) + " a batch for reading its items"});
  evidence.push_back({"collate_seconds", fetch.collate_seconds,
                      duration_text(fetch.collate_seconds) + " a batch for putting them together"});
}

}  // namespace gpuutil
