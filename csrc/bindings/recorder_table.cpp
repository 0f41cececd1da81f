#include "bindings/recorder_table.h"

#include <string_view>

#include "base/clock.h"
#include "base/intern.h"
#include "bindings/hot_path.h"
#include "record/table.h"

namespace gpuutil {
namespace {

RecorderRegistry* the_registry = nullptr;

Interner& names() {
  static auto* instance = new Interner();
  return *instance;
}

void emit(uint16_t kind, uint16_t flags, uint32_t subject, int64_t time_ns, int64_t value) {
  Event event;
  event.time_ns = time_ns;
  event.value = value;
  event.subject = subject;
  event.kind = static_cast<EventKind>(kind);
  event.flags = flags;
  the_registry->emit(event);
}

GpuutilRecorderTable table = {
    sizeof(GpuutilRecorderTable),
    0,
    emit,
    [] { return now_ns(); },
    [](const char* name, size_t length) { return names().intern(std::string_view(name, length)); },
    [] { return RecorderRegistry::inert() || hot_path().registry == nullptr ? 1 : 0; },
    [](GpuutilObserverSwitch switch_fn) { hot_path().observer.store(switch_fn); },
    [](GpuutilGradMode is_enabled) { hot_path().grad_mode.store(is_enabled); },
};

}  // namespace

pybind11::capsule recorder_capsule(RecorderRegistry& registry) {
  the_registry = &registry;
  return pybind11::capsule(&table, GPUUTIL_RECORDER_NAME);
}

}  // namespace gpuutil
