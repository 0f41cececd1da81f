// A control group's quota stops this job although its mask shows more CPUs: everything that sizes
// itself by the mask (thread pools, worker counts) asks for time that is not there. A quota that is
// not used up limits nobody, so work that sleeps is none of this rule's business.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {

RuleResult cpu_quota(const Features& features, const Thresholds& thresholds) {
  const HostFeatures& host = features.host;
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (!host.quota_cores) {
    return host.quotas_known ? clear() : not_measured("CPU quotas of the control groups not read");
  }
  if (!host.mask_cores) return not_measured("CPU mask of this process not read");
  const double quota = *host.quota_cores;
  const double mask = *host.mask_cores;
  if (quota >= mask) return clear();
  if (!host.throttled_ratio) return not_measured("throttling by the CPU quota not measured");
  const double throttled = std::clamp(*host.throttled_ratio, 0.0, 1.0);
  if (throttled < thresholds.throttled_ratio) return clear();

  // Where k threads run at once, a period that is used up ends after quota / k of its length and
  // the rest is a stop. Of k is known that it is at most the mask, and which threads there are.
  const auto stopped = [&](double k) { return k > quota ? throttled * (1 - quota / k) : 0; };
  const int32_t workers = features.loader ? features.loader->workers : 0;
  const double threads = std::max(1, features.main_threads) + workers;
  const double wait = std::clamp(features.input_wait_ratio, 0.0, 1.0);
  const bool waits = features.loader && wait >= thresholds.input_wait_ratio;
  // A stop of the host behind a device that is busy may cost nothing.
  const bool hidden = !features.device_is_host && !waits;

  Finding finding;
  finding.id = "cpu_quota";
  finding.family = Family::resources;
  finding.where = host.cpu_budget_source;
  const double low = hidden ? 0 : thresholds.throttle_reached * stopped(std::min(mask, threads));
  finding.gain_ratio = gain_range(low, stopped(mask));
  if (finding.gain_ratio.high < thresholds.min_gain_ratio) return clear();
  finding.confidence = 0.9 * steps_evidence(features, thresholds);
  finding.title = fmt::format("the CPU quota stops this job in {} of its periods: {} CPUs, not {}",
                              percent_text(throttled), cores_text(quota), cores_text(mask));
  finding.evidence.push_back(
      {"throttled_ratio", throttled,
       fmt::format("the quota was used up in {} of its periods", percent_text(throttled))});
  finding.evidence.push_back({"quota_cores", quota,
                              fmt::format("the quota is {} CPUs a second", cores_text(quota))});
  finding.evidence.push_back(
      {"mask_cores", mask,
       fmt::format("the mask, and what sizes itself by it, shows {}", cores_text(mask))});
  finding.evidence.push_back({"threads", threads,
                              fmt::format("{} main threads and workers", count_text(threads))});
  if (waits) {
    finding.evidence.push_back(
        {"shared_wait_ratio", wait,
         "findings on input and too_few_cpus may speak of this same time: their gains are "
         "alternatives, not a sum"});
  }
  const bool many = features.main_threads > 1 && threads > quota + 0.25;
  if (many && features.ranks <= 1) finding.remedies.push_back("main_threads");
  finding.advice = fmt::format(
      "size threads and workers by the quota of {} CPUs, not by the {} of the mask "
      "(torch.set_num_threads, num_workers, OMP_NUM_THREADS), or ask for a larger quota",
      cores_text(quota), cores_text(mask));
  return found(std::move(finding));
}

}  // namespace gpuutil
