#include "tune/simulate_trial.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/random.h"
#include "base/robust.h"

namespace gpuutil {

namespace {

constexpr int kFlightSteps = 5;
constexpr int kCheapFlightSteps = 2;
constexpr double kModestGain = 0.05;  // what is predicted: too little for the fast path

}  // namespace

SimulatedTrial simulate_trial(std::span<const double> series, double gain, uint64_t seed,
                              bool cheap_flip, const Policy& policy) {
  const bool usable = std::all_of(series.begin(), series.end(),
                                  [](double value) { return value > 0 && std::isfinite(value); });
  if (series.empty() || !usable)
    throw std::invalid_argument("series: step times above zero are needed");
  if (!(gain > -1)) throw std::invalid_argument("gain: must be above -1");

  TrialSetup setup;
  setup.proposal.gain_low = setup.proposal.gain_high = kModestGain;
  setup.proposal.cheap_flip = cheap_flip;
  setup.proposal.settle_steps = cheap_flip ? kCheapFlightSteps : kFlightSteps;
  setup.step_seconds = *median(series);
  setup.seed = seed;
  Trial trial(setup, policy);
  Random random(seed);
  const size_t offset = random.below(series.size());
  for (int64_t index = 0; !trial.done(); ++index) {
    StepSample sample;
    sample.index = index;
    sample.seconds = series[(offset + static_cast<size_t>(index)) % series.size()];
    if (trial.in_force()) sample.seconds /= 1 + gain;
    trial.observe(sample);
    while (trial.wanted()) {
      trial.sent(0);
      trial.applied();
      trial.effective(index);
    }
  }
  return SimulatedTrial{trial.result().outcome, trial.result().steps, trial.result().speedup};
}

}  // namespace gpuutil
