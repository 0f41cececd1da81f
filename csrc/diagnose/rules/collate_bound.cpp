// Training waits while items that were read already are put together to a batch. Where they are
// small arrays of one shape, one stack a field does it sooner; otherwise it is the script's own
// collate, or plain copying.
#include <fmt/format.h>

#include "diagnose/fetch_view.h"
#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult collate_bound(const Features& features, const Thresholds& thresholds) {
  const InputView input = view_input(features, thresholds);
  if (!input.missing.empty()) return not_measured(input.missing);
  if (!input.waits) return clear();
  const FetchView fetch = view_fetch(features);
  if (!fetch.missing.empty()) return not_measured(fetch.missing);
  // One indexing replaces the collate too: per_row_fetch speaks of both.
  if (fetch.shortened || fetch.batch_seconds) return clear();
  const double share = fetch.collate_seconds / fetch.whole_seconds;
  if (share < thresholds.collate_ratio) return clear();

  const double saved = fetch.collate_seconds - fetch.stack_seconds.value_or(0);
  const double high = saved_share(input, fetch, saved);
  if (high < thresholds.min_gain_ratio) return clear();

  Finding finding;
  // What of somebody's collate could be spared is not known, only what it takes.
  finding.gain_ratio =
      gain_range(fetch.stack_seconds ? thresholds.fetch_cost_reached * high : 0, high);
  finding.id = "collate_bound";
  finding.family = Family::data;
  finding.where = features.loader->name;
  finding.confidence = input.evidence * thresholds.fetch_cost_confidence;
  finding.title = fmt::format("{} of a fetch puts items together (collate): {} a batch",
                              percent_text(share), duration_text(fetch.collate_seconds));
  add_wait_evidence(input, finding.evidence);
  add_fetch_evidence(fetch, finding.evidence);
  if (fetch.stack_seconds) {
    finding.evidence.push_back(
        {"stack_seconds", *fetch.stack_seconds,
         duration_text(*fetch.stack_seconds) + " for the same batch by one stack a field"});
    if (features.ranks <= 1) finding.remedies.push_back("loader_batch_fetch");
    finding.advice = "a collate_fn that stacks the arrays of a field at once (numpy.stack)";
  } else {
    finding.advice =
        "a cheaper collate_fn (one copy a field, no work a sample), or workers that do it";
  }
  add_alternatives_evidence(input, finding.evidence);
  return found(std::move(finding));
}

}  // namespace gpuutil
