// The loader starts its worker processes anew for each epoch. With short epochs that costs a large share of the time,
// although a step hardly waits for its input: it is in the turn from one pass to the next.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult worker_restart(const Features& features, const Thresholds& thresholds) {
  if (features.steps < thresholds.min_steps) {
    return not_measured(
        fmt::format("{} comparable steps seen, {} needed", features.steps, thresholds.min_steps));
  }
  if (!features.loader) return not_measured("no DataLoader seen");
  const LoaderFacts& loader = *features.loader;
  if (loader.user_workers == 0 || loader.persistent) return clear();
  const int32_t turns = features.turn ? features.turn->turns : 0;
  if (turns < thresholds.min_turns) {
    return not_measured(
        fmt::format("{} epoch turns of the loader seen, {} needed", turns, thresholds.min_turns));
  }
  const TurnCost& turn = *features.turn;
  if (!(turn.epoch_seconds > 0)) return not_measured("epoch time not measured");

  // Ending and starting processes is saved for sure. Of the wait for the first batch only what is beyond the making
  // of one batch, which workers that are there already have to do as well: in steady running N of them deliver one a
  // step, so that it takes no longer than N steps.
  const double processes = turn.end_seconds + turn.iter_seconds;
  const double usual = turn.usual_fetch_seconds;
  const double one_batch = std::max(usual, loader.user_workers * features.step_seconds_p50);
  const double sure = processes + std::max(0.0, turn.first_fetch_seconds - one_batch);
  const double most = processes + std::max(0.0, turn.first_fetch_seconds - usual);
  Finding finding;
  finding.gain_ratio = gain_range(sure / turn.epoch_seconds, most / turn.epoch_seconds);
  if (finding.gain_ratio.low < thresholds.min_gain_ratio) return clear();

  finding.id = "worker_restart";
  finding.family = Family::data;
  finding.where = loader.name;
  finding.confidence = evidence_weight(turns, thresholds.min_turns, thresholds.full_turns);
  finding.title =
      fmt::format("{} of each epoch goes into starting {} worker{} anew", percent_text(finding.gain_ratio.high),
                  loader.user_workers, loader.user_workers == 1 ? "" : "s");
  finding.evidence.push_back(
      {"turn_seconds", most,
       fmt::format("{} from the last batch of an epoch to the first one of the next, beyond a usual fetch",
                   duration_text(most))});
  finding.evidence.push_back({"epochs_per_minute", 60 / turn.epoch_seconds,
                              fmt::format("{} epochs a minute, {} each", count_text(60 / turn.epoch_seconds),
                                          duration_text(turn.epoch_seconds))});
  finding.evidence.push_back({"workers", static_cast<double>(loader.user_workers),
                              fmt::format("{} workers, started {} times a minute", loader.user_workers,
                                          count_text(60 / turn.epoch_seconds * loader.user_workers))});
  finding.remedies.push_back("loader_persistent");
  finding.advice = "mon.apply(\"loader_persistent\") keeps them from epoch to epoch, as persistent_workers=True does";
  return found(std::move(finding));
}

}  // namespace gpuutil
