// The data lies in tensors, and a batch is made of hundreds of rows that are read one by one and put
// together again, where one indexing would do.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/fetch_view.h"
#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult per_row_fetch(const Features& features, const Thresholds& thresholds) {
  const InputView input = view_input(features, thresholds);
  if (!input.missing.empty()) return not_measured(input.missing);
  if (!input.waits) return clear();
  const FetchView fetch = view_fetch(features);
  if (!fetch.missing.empty()) return not_measured(fetch.missing);
  if (fetch.shortened) return clear();
  if (!fetch.batch_seconds) {
    // Items that take longer do work of their own, whatever it is.
    const double item = fetch.row_seconds / std::max(1, features.loader->batch_size);
    if (features.loader->batch_size > 0 && item > thresholds.plain_row_seconds) return clear();
    return not_measured("what one indexing a batch would take is known of TensorDataset only");
  }

  const double saved = fetch.whole_seconds - *fetch.batch_seconds;
  const double high = saved_share(input, fetch, saved);
  if (high < thresholds.min_gain_ratio) return clear();

  Finding finding;
  finding.gain_ratio = gain_range(thresholds.fetch_cost_reached * high, high);
  finding.id = "per_row_fetch";
  finding.family = Family::data;
  finding.where = features.loader->name;
  finding.confidence = input.evidence * thresholds.fetch_cost_confidence;
  finding.title =
      fmt::format("rows are read one by one: {} a batch, at once {}",
                  duration_text(fetch.whole_seconds), duration_text(*fetch.batch_seconds));
  add_wait_evidence(input, finding.evidence);
  add_fetch_evidence(fetch, finding.evidence);
  finding.evidence.push_back(
      {"batch_seconds", *fetch.batch_seconds,
       duration_text(*fetch.batch_seconds) + " for the same batch by one indexing"});
  add_alternatives_evidence(input, finding.evidence);
  if (features.ranks <= 1) finding.remedies.push_back("loader_batch_fetch");
  finding.advice =
      "index whole batches: batch_size=None, sampler=BatchSampler(sampler, batch_size, drop_last)";
  return found(std::move(finding));
}

}  // namespace gpuutil
