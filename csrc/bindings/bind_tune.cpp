#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "tune/simulate_trial.h"

namespace gpuutil {

namespace py = pybind11;

void bind_tune(py::module_& module) {
  module.def(
      "simulate_trial",
      [](const std::vector<double>& series, double gain, uint64_t seed, bool cheap_flip) {
        SimulatedTrial trial;
        {
          const py::gil_scoped_release release;
          trial = simulate_trial(series, gain, seed, cheap_flip);
        }
        py::dict result;
        result["outcome"] = std::string(outcome_name(trial.outcome));
        result["steps"] = trial.steps;
        result["speedup"] = py::none();
        if (const auto& speedup = trial.speedup) {
          result["speedup"] = py::make_tuple(speedup->low, speedup->mid, speedup->high);
        }
        return result;
      },
      py::arg("series"), py::arg("gain"), py::arg("seed"), py::arg("cheap_flip"),
      R"(One trial of a change with a known gain, on recorded step times.

Args:
    series: Step times in seconds, read in a circle from a place that `seed` chooses.
    gain: With the change a step takes 1 / (1 + gain) of what is recorded.
    seed: Of the place and of the trial's own draws.
    cheap_flip: Whether the change may be switched every few steps.

Returns:
    A dict: outcome ("kept", "undone", "inconclusive"), steps, speedup (low, mid, high) or None.

Raises:
    ValueError: If a time is not above zero or the gain is -1 or less.
)");
}

}  // namespace gpuutil
