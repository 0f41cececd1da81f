#include "profile/steady_profile.h"

#include <algorithm>
#include <vector>

#include "base/robust.h"
#include "profile/epoch_budget.h"

namespace gpuutil {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double seconds(double ns) { return ns * 1e-9; }

// Means over groups of `size` values in a row; what is left over at the end is dropped.
std::vector<double> grouped(const std::vector<double>& values, size_t size) {
  if (size <= 1 || values.size() < 2 * size) return values;
  std::vector<double> means;
  for (size_t begin = 0; begin + size <= values.size(); begin += size) {
    double sum = 0;
    for (size_t i = begin; i < begin + size; ++i) sum += values[i];
    means.push_back(sum / static_cast<double>(size));
  }
  return means;
}

}  // namespace

StepShape shape_of(const Window& window) {
  StepShape shape;
  for (const Step& step : window.steps()) {
    PhaseTimes known, split;
    for (size_t i = 0; i < kPhaseCount; ++i) {
      const auto phase = static_cast<Phase>(i);
      const bool unknown = phase == Phase::other || needs_observer(phase);
      (unknown ? split : known)[phase] = step.phases[phase];
    }
    ++shape.steps;
    shape.wall_ns += step.wall_ns();
    shape.known += known;
    shape.work_ns += split.total();
    if (!step.sampled) continue;
    ++shape.sampled_steps;
    shape.sampled_wall_ns += step.wall_ns();
    shape.split += split;
    shape.sampled_work_ns += split.total();
    shape.operator_ns += step.operator_ns;
    shape.user_python_ns += step.user_python_ns;
    shape.framework_gap_ns += step.python_gap_ns - step.user_python_ns;
  }
  return shape;
}

Features steady_features(const Window& window, size_t burst) {
  Features features;
  if (window.empty()) return features;
  const StepShape shape = shape_of(window);
  features.steps = shape.steps;
  features.sampled_steps = shape.sampled_steps;
  features.coverage_ratio = ratio(shape.sampled_wall_ns, shape.wall_ns);

  const bool unsampled_only = window.size() - window.sampled() >= kEnoughUnsampled;
  std::vector<double> walls, waits, works;
  int64_t samples = 0, micro_steps = 0;
  bool samples_known = true;
  for (const Step& step : window.steps()) {
    samples += step.samples;
    micro_steps += step.micro_steps;
    samples_known = samples_known && step.samples > 0;
    features.has_optimizer = features.has_optimizer || step.optimizer_ends > 0;
    if (unsampled_only && step.sampled) continue;
    int64_t work_ns = step.phases[Phase::other];
    for (size_t i = 0; i < kPhaseCount; ++i) {
      if (needs_observer(static_cast<Phase>(i))) work_ns += step.phases.ns[i];
    }
    walls.push_back(static_cast<double>(step.wall_ns()));
    waits.push_back(static_cast<double>(step.phases[Phase::input_wait]));
    works.push_back(static_cast<double>(work_ns));
  }
  walls = grouped(walls, burst);
  waits = grouped(waits, burst);
  works = grouped(works, burst);
  features.step_seconds_p50 = seconds(quantile(walls, 0.5).value_or(0));
  features.step_seconds_p95 = seconds(quantile(walls, 0.95).value_or(0));
  features.input_wait_seconds_p50 = seconds(quantile(waits, 0.5).value_or(0));
  features.input_wait_seconds_p95 = seconds(quantile(waits, 0.95).value_or(0));
  features.input_wait_ratio = ratio(shape.known[Phase::input_wait], shape.wall_ns);
  const auto n = static_cast<double>(shape.steps);
  features.samples_per_step = samples_known ? static_cast<double>(samples) / n : 0;
  features.micro_steps_per_step = static_cast<double>(micro_steps) / n;

  for (size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phase != Phase::other && !needs_observer(phase)) {
      features.phase_ratio[i] = ratio(shape.known[phase], shape.wall_ns);
    } else if (shape.sampled_work_ns > 0) {
      features.phase_ratio[i] =
          ratio(shape.split[phase], shape.sampled_work_ns) * ratio(shape.work_ns, shape.wall_ns);
    }
  }
  // No fetch was seen on the training thread: how long it waits for its input is not known.
  if (micro_steps == 0) features.phase_ratio[static_cast<size_t>(Phase::input_wait)].reset();
  if (shape.sampled_work_ns > 0) {
    const double work_seconds = seconds(median(works).value_or(0));
    const auto part = [&](int64_t ns) {
      return std::clamp(ratio(ns, shape.sampled_work_ns), 0.0, 1.0) * work_seconds;
    };
    features.operator_seconds = part(shape.operator_ns);
    features.python_gap_seconds = part(shape.framework_gap_ns + shape.user_python_ns);
    features.user_python_seconds = part(shape.user_python_ns);
  }
  int64_t cpu_ns = 0, wait_ns = 0;
  for (const Step& step : window.steps()) {
    if (!step.sampled) continue;
    cpu_ns += step.fetch_cpu_ns;
    wait_ns += step.phases[Phase::input_wait];
  }
  if (wait_ns > 0) features.fetch_cpu_ratio = ratio(cpu_ns, wait_ns);
  return features;
}

}  // namespace gpuutil
