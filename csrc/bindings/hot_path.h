// The always-on path (H1): what runs at every fetch and every optimizer step of the user's loop, on the
// user's threads, with the GIL held. Plain CPython C API: a pybind11 call costs several times as much as all of
// this. Nothing here allocates, locks or blocks unless `attention` was raised.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "engine/attention.h"
#include "record/recorder.h"

namespace gpuutil {

struct HotPath {
  RecorderRegistry* registry = nullptr;   // null: detached, every hook passes straight through
  Recorder* scratch = nullptr;            // set while the path times itself: events go nowhere
  PyObject* on_boundary = nullptr;        // callable(where: str, subject) -> None; never raises
  PyObject* on_exhausted = nullptr;       // callable(iterator) -> None
  PyObject* resolve = nullptr;            // callable(iterator) -> int: the loader's id, for an unknown iterator
  std::atomic<uint32_t> attention{0};     // bits of Attention

  // Sampling of whole steps (H2). Written by the engine thread, counted down on the training thread.
  std::atomic<uint32_t> sample_every{0};  // 0: never
  std::atomic<uint32_t> sample_span{1};   // optimizer ends that make one step
  std::atomic<void (*)(int)> observer{nullptr};  // from `_torch`: adds or removes its callbacks
  std::atomic<int (*)()> grad_mode{nullptr};     // from `_torch`: whether gradients are on
  int32_t countdown = 0;                  // boundaries until the observer is switched
  bool sampling = false;
  uint32_t fetches_without_optimizer = 0; // many: this loop has no optimizer, fetches are the boundaries
};

HotPath& hot_path();

// Starts with `startup_steps` sampled steps in a row. GIL held.
void hot_path_start(RecorderRegistry* registry, uint32_t startup_steps);
// Takes the observer out and makes every hook inert. GIL held.
void hot_path_stop();

// hook(optimizer, args, kwargs): a builtin function, for torch's global optimizer post hooks.
PyObject* new_optimizer_post_hook();
// A descriptor that stands in for `original` (an iterator class's __next__) and calls it. Owns a reference.
PyObject* new_next(PyObject* original);

// What one fetch and one optimizer step cost with the hooks in, in nanoseconds: the hooks themselves on a function
// that does nothing, less that function alone. `native_only` leaves the interpreter's calls out. GIL held.
double hot_path_cost_ns(int rounds, bool native_only);

}  // namespace gpuutil
