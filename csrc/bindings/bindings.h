// What the files of bindings/ put into the module.
#pragma once

#include <pybind11/pybind11.h>

namespace gpuutil {

// simulate_trial: the trial statistics on given noise, for tests/bench/trial_errors.py.
void bind_tune(pybind11::module_& module);

}  // namespace gpuutil
