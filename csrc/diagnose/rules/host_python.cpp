// The residual: the user's own Python between fetch, forward, backward and optimizer (metrics,
// bookkeeping, logging that is not a known logger). A residual has no call site; it is named as
// what is left over.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult host_python(const Features& features, const Thresholds& thresholds) {
  if (features.steps < thresholds.min_steps) {
    return not_measured(
        fmt::format("{} comparable steps seen, {} needed", features.steps, thresholds.min_steps));
  }
  if (!(features.step_seconds_p50 > 0)) return not_measured("step time not measured");
  if (!features.user_python_seconds) {
    return not_measured(
        "forward, backward and optimizer not seen, so what lies between them is not known");
  }
  if (features.sampled_steps < thresholds.min_sampled_steps) {
    return not_measured(fmt::format("{} sampled steps seen, {} needed", features.sampled_steps,
                                    thresholds.min_sampled_steps));
  }
  const double step = features.step_seconds_p50;
  const double python = std::clamp(*features.user_python_seconds, 0.0, step);
  if (python < thresholds.host_python_ratio * step) return clear();
  if (!features.device_is_host) {
    return not_measured(
        "device time not measured: host work that the device hides is worth nothing");
  }

  // On the CPU nothing runs beside it, so all of it counts; but behind workers that cannot keep up
  // the time saved would only be waited for input instead.
  const bool workers = features.loader && features.loader->workers > 0;
  const double wait = std::clamp(features.input_wait_ratio, 0.0, 1.0) * step;
  const bool hidden = workers && wait >= thresholds.input_wait_ratio * step;
  const double counts = hidden ? std::max(0.0, python - wait) : python;
  // The mean over few sampled steps is off by about one over the square root of their number.
  const double doubt = 1 / std::sqrt(static_cast<double>(features.sampled_steps));

  Finding finding;
  finding.id = "host_python";
  finding.family = Family::monitoring;
  finding.gain_ratio = gain_range(hidden ? 0 : counts * (1 - doubt) / step, counts / step);
  finding.confidence = evidence_weight(static_cast<double>(features.sampled_steps),
                                       static_cast<double>(thresholds.min_sampled_steps),
                                       static_cast<double>(thresholds.full_sampled_steps)) *
                       evidence_weight(static_cast<double>(features.steps),
                                       static_cast<double>(thresholds.min_steps),
                                       static_cast<double>(thresholds.full_steps));
  finding.title = fmt::format("{} of the step is left over: your own Python between the phases",
                              percent_text(python / step));
  finding.evidence.push_back(
      {"user_python_seconds", python,
       fmt::format("{} a step outside of fetch, forward, backward and optimizer, in gaps "
                   "over 0.2 ms",
                   duration_text(python))});
  finding.evidence.push_back({"step_seconds", step, duration_text(step) + " a step"});
  finding.evidence.push_back(
      {"sampled_steps", static_cast<double>(features.sampled_steps),
       fmt::format("seen in {} sampled steps ({} of the time)", features.sampled_steps,
                   percent_text(features.coverage_ratio))});
  if (hidden) {
    finding.evidence.push_back(
        {"input_wait_ratio", features.input_wait_ratio,
         fmt::format("{} of the step waits for the workers: what is saved here would be "
                     "waited there",
                     percent_text(features.input_wait_ratio))});
  }
  finding.advice =
      "a residual, without a line number: look at metrics, .item(), printing and bookkeeping in "
      "the loop";
  return found(std::move(finding));
}

}  // namespace gpuutil
