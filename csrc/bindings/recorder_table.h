// The table of record/table.h over the process's registry, in a capsule.
#pragma once

#include <pybind11/pybind11.h>

#include "record/recorder.h"

namespace gpuutil {

pybind11::capsule recorder_capsule(RecorderRegistry& registry);

}  // namespace gpuutil
