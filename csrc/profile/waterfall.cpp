#include "profile/waterfall.h"

#include <algorithm>
#include <array>

#include "profile/share.h"
#include "profile/steady_profile.h"

namespace gpuutil {

double Waterfall::total() const {
  double sum = busy_ratio.value_or(0) + unexplained_ratio;
  for (const Loss& loss : lost) sum += loss.ratio;
  return sum;
}

std::optional<Waterfall> host_waterfall(const Window& window) {
  const StepShape shape = shape_of(window);
  if (shape.wall_ns <= 0) return std::nullopt;
  const auto whole = static_cast<double>(shape.wall_ns);
  Waterfall waterfall;
  const auto lose = [&](std::string_view cause, int64_t ns) {
    if (ns > 0) waterfall.lost.push_back({cause, static_cast<double>(ns) / whole});
  };
  for (size_t i = 0; i < kPhaseCount; ++i) lose(kPhaseNames[i], shape.known.ns[i]);

  int64_t unexplained_ns = shape.work_ns;
  if (shape.sampled_steps > 0) {
    const int64_t unsampled_steps = shape.steps - shape.sampled_steps;
    const int64_t unsampled_work_ns = shape.work_ns - shape.sampled_work_ns;
    const int64_t explained_ns =
        shape.sampled_work_ns +
        std::min(unsampled_work_ns, shape.sampled_work_ns / shape.sampled_steps * unsampled_steps);
    const std::array<int64_t, 4> weights = {
        shape.operator_ns, shape.framework_gap_ns, shape.user_python_ns,
        std::max<int64_t>(0, shape.sampled_work_ns - shape.operator_ns - shape.framework_gap_ns -
                                 shape.user_python_ns)};
    const std::vector<int64_t> parts = share_out(explained_ns, weights);
    waterfall.busy_ratio = static_cast<double>(parts[0]) / whole;
    lose("python_gaps", parts[1]);
    lose("user_python", parts[2]);
    unexplained_ns = shape.work_ns - explained_ns + parts[3];
  }
  waterfall.unexplained_ratio = static_cast<double>(unexplained_ns) / whole;
  std::stable_sort(waterfall.lost.begin(), waterfall.lost.end(),
                   [](const Loss& a, const Loss& b) { return a.ratio > b.ratio; });
  return waterfall;
}

}  // namespace gpuutil
