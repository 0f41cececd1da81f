// Workers hand tensors over in /dev/shm; a container gives it 64 MB unless told otherwise. Where the
// batches in flight do not fit, a worker dies with a bus error: a danger, not time lost.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/input_view.h"
#include "diagnose/rule_result.h"
#include "diagnose/rules.h"
#include "diagnose/wording.h"

namespace gpuutil {
namespace {

std::string megabytes(double bytes) { return fmt::format("{} MB", count_text(bytes / 1e6)); }

}  // namespace

RuleResult shm_small(const Features& features, const Thresholds& thresholds) {
  if (std::string missing = steps_missing(features, thresholds); !missing.empty()) {
    return not_measured(std::move(missing));
  }
  if (!features.loader) return not_measured("no DataLoader seen");
  const LoaderFacts& loader = *features.loader;
  if (loader.workers == 0) return clear();
  const HostFeatures& host = features.host;
  if (!host.shm_size_bytes || !host.shm_free_bytes || !(*host.shm_size_bytes > 0)) {
    return not_measured("space in /dev/shm not read");
  }
  const double size = *host.shm_size_bytes;
  const double free = std::clamp(*host.shm_free_bytes, 0.0, size);
  const bool nearly_full = free < thresholds.shm_least_free_ratio * size;
  // Each worker has its queue and one batch in the making.
  const double batches = static_cast<double>(loader.workers) * (std::max(1, loader.prefetch) + 1);
  double need = 0;
  if (loader.batch_bytes) need = batches * static_cast<double>(*loader.batch_bytes);
  if (!nearly_full && need <= thresholds.shm_ratio * size) {
    const bool plenty = free >= thresholds.shm_plenty_free_ratio * size;
    if (!loader.batch_bytes && !plenty) return not_measured("bytes of a batch not seen yet");
    return clear();
  }

  Finding finding;
  finding.id = "shm_small";
  finding.family = Family::resources;
  finding.where = "/dev/shm";
  const bool crash = nearly_full || need >= size;
  finding.at_least = crash ? Severity::critical : Severity::warning;
  finding.confidence = loader.batch_bytes ? 0.9 : 0.7;
  finding.title =
      need > thresholds.shm_ratio * size
          ? fmt::format("batches in flight may need {} of the {} in /dev/shm", megabytes(need),
                        megabytes(size))
          : fmt::format("{} of the {} in /dev/shm are left", megabytes(free), megabytes(size));
  finding.evidence.push_back(
      {"shm_size_bytes", size, fmt::format("/dev/shm has {}", megabytes(size))});
  finding.evidence.push_back({"shm_free_bytes", free, fmt::format("{} are free now", megabytes(free))});
  if (loader.batch_bytes) {
    const auto bytes = static_cast<double>(*loader.batch_bytes);
    finding.evidence.push_back(
        {"batch_bytes", bytes, fmt::format("the tensors of a batch take {}", megabytes(bytes))});
    finding.evidence.push_back(
        {"in_flight_bytes", need,
         fmt::format("{} workers with {} batches each and one in the making: {}", loader.workers,
                     std::max(1, loader.prefetch), megabytes(need))});
  }
  finding.advice =
      "give the container more (docker run --shm-size=1g or --ipc=host; in Kubernetes an emptyDir "
      "with medium: Memory at /dev/shm), or lower prefetch_factor, num_workers or the batch";
  return found(std::move(finding));
}

}  // namespace gpuutil
