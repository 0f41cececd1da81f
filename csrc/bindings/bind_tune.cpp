#include "bindings/bindings.h"

namespace gpuutil {
void bind_tune(pybind11::module_&) {}
}  // namespace gpuutil
