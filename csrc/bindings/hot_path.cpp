#include "bindings/hot_path.h"

#include <utility>

#include "base/clock.h"
#include "record/event.h"

namespace gpuutil {
namespace {

constexpr const char* kOriginal = "gpuutil.original_next";
PyObject* source_name = nullptr;  // interned "_gpuutil_source"

void put(Recorder* recorder, EventKind kind, int64_t time_ns, uint32_t subject = 0, int64_t value = 0,
         uint16_t flags = 0) {
  if (recorder == nullptr) return;
  Event event;
  event.time_ns = time_ns;
  event.value = value;
  event.subject = subject;
  event.kind = kind;
  event.flags = flags;
  recorder->push(event);
}

// Calls `callable(arguments...)` and holds on to it meanwhile: the callee may detach, which drops ours.
template <class... Arguments>
PyObject* call_held(PyObject* callable, const char* format, Arguments... arguments) {
  Py_INCREF(callable);
  PyObject* result = PyObject_CallFunction(callable, format, arguments...);
  Py_DECREF(callable);
  return result;
}

// Calls into Python with whatever exception is pending set aside. An error of ours must not reach the user's
// loop: the callee catches everything; should one escape all the same, it is dropped here.
template <class Call>
void aside(Call call) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = call();
  if (result == nullptr) {
    // KeyboardInterrupt is the user's: hand it on unless an error of theirs is already on its way.
    const bool free_to_raise =
        type == nullptr || PyErr_GivenExceptionMatches(type, PyExc_StopIteration) != 0;
    if (free_to_raise && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      return;
    }
    PyErr_Clear();
  }
  Py_XDECREF(result);
  PyErr_Restore(type, value, traceback);
}

Recorder* recorder_of(HotPath& hot) {
  return hot.scratch != nullptr ? hot.scratch : hot.registry->this_thread();
}

void switch_observer(HotPath& hot, Recorder* recorder, bool on) {
  auto observer = hot.observer.load(std::memory_order_relaxed);
  if (observer == nullptr) return;
  if (on) put(recorder, EventKind::sampling_begin, now_ns());
  observer(on ? 1 : 0);
  if (!on) put(recorder, EventKind::sampling_end, now_ns());
  hot.sampling = on;
}

// One boundary of the loop: an optimizer's end, or a fetch where no optimizer is seen.
void count_boundary(HotPath& hot, Recorder* recorder) {
  if (--hot.countdown > 0) return;
  const uint32_t every = hot.sample_every.load(std::memory_order_relaxed);
  const auto span = static_cast<int32_t>(hot.sample_span.load(std::memory_order_relaxed));
  if (hot.sampling) {
    switch_observer(hot, recorder, false);
    hot.countdown = every == 0 ? INT32_MAX : static_cast<int32_t>(every) * span;
  } else if (every == 0) {
    hot.countdown = INT32_MAX;
  } else {
    switch_observer(hot, recorder, true);
    hot.countdown = span;
  }
}

uint32_t source_of(HotPath& hot, PyObject* iterator) {
  PyObject* id = PyObject_GetAttr(iterator, source_name);
  if (id == nullptr) {
    PyErr_Clear();
    if (hot.resolve == nullptr) return 0;
    id = call_held(hot.resolve, "(O)", iterator);
    if (id == nullptr) {
      PyErr_Clear();
      return 0;
    }
  }
  const unsigned long value = PyLong_Check(id) ? PyLong_AsUnsignedLongMask(id) : 0;
  Py_DECREF(id);
  return static_cast<uint32_t>(value);
}

// Number of samples in a batch whose loader cannot tell it beforehand is left to the profile: 0 here.
PyObject* next_call(PyObject* capsule, PyObject* iterator) {
  auto* original = static_cast<PyObject*>(PyCapsule_GetPointer(capsule, kOriginal));
  HotPath& hot = hot_path();
  if (hot.registry == nullptr || hot.registry->inert()) return PyObject_CallOneArg(original, iterator);

  const uint32_t source = source_of(hot, iterator);
  if (hot.attention.load(std::memory_order_relaxed) != 0 && hot.on_boundary != nullptr) {
    aside([&] { return call_held(hot.on_boundary, "sO", "fetch", iterator); });
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (hot.registry == nullptr) return PyObject_CallOneArg(original, iterator);  // detached in there
  }
  Recorder* recorder = recorder_of(hot);
  if (++hot.fetches_without_optimizer > 64) count_boundary(hot, recorder);
  const int64_t cpu_begin_ns = hot.sampling ? thread_cpu_ns() : 0;
  put(recorder, EventKind::fetch_begin, now_ns(), source);

  PyObject* batch = PyObject_CallOneArg(original, iterator);

  if (hot.registry == nullptr) return batch;  // detached inside the fetch
  uint16_t flags = kFetchBatch;
  if (batch == nullptr) {
    flags = PyErr_ExceptionMatches(PyExc_StopIteration) ? kFetchExhausted : kFetchError;
  }
  if (auto grad_mode = hot.grad_mode.load(std::memory_order_relaxed); grad_mode != nullptr && grad_mode() == 0) {
    flags |= kFetchNoGrad;
  }
  put(recorder, EventKind::fetch_end, now_ns(), source, 0, flags);
  if (cpu_begin_ns != 0) {
    put(recorder, EventKind::fetch_cpu, now_ns(), source, thread_cpu_ns() - cpu_begin_ns);
  }
  if ((flags & kFetchExhausted) != 0 && hot.on_exhausted != nullptr) {
    aside([&] { return call_held(hot.on_exhausted, "(O)", iterator); });
  }
  return batch;
}

PyMethodDef next_definition = {"__next__", next_call, METH_O, nullptr};

PyObject* optimizer_post(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HotPath& hot = hot_path();
  if (count < 1 || hot.registry == nullptr || hot.registry->inert()) Py_RETURN_NONE;
  Recorder* recorder = recorder_of(hot);
  const auto identity = reinterpret_cast<uintptr_t>(arguments[0]);
  hot.fetches_without_optimizer = 0;
  put(recorder, EventKind::optimizer_end, now_ns(), static_cast<uint32_t>(identity >> 4));
  count_boundary(hot, recorder);
  if (hot.attention.load(std::memory_order_relaxed) != 0 && hot.on_boundary != nullptr) {
    aside([&] { return call_held(hot.on_boundary, "sO", "step", arguments[0]); });
    if (PyErr_Occurred() != nullptr) return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef post_definition = {
    "gpuutil_optimizer_post",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(optimizer_post)), METH_FASTCALL, nullptr};

PyObject* nothing(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyMethodDef nothing_definition = {"nothing", nothing, METH_O, nullptr};

template <class Body>
double per_round_ns(int rounds, Body body) {
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int64_t begin_ns = thread_cpu_ns();
    for (int i = 0; i < rounds; ++i) body();
    const double one = static_cast<double>(thread_cpu_ns() - begin_ns) / rounds;
    if (attempt == 0 || one < best) best = one;
  }
  return best;
}

}  // namespace

HotPath& hot_path() {
  static HotPath instance;
  return instance;
}

void hot_path_start(RecorderRegistry* registry, uint32_t startup_steps) {
  HotPath& hot = hot_path();
  if (source_name == nullptr) source_name = PyUnicode_InternFromString("_gpuutil_source");
  hot.sampling = false;
  hot.fetches_without_optimizer = 0;
  hot.countdown = 1;  // the first boundary switches the observer on ...
  hot.sample_every.store(startup_steps == 0 ? 0 : 1, std::memory_order_relaxed);
  hot.sample_span.store(1, std::memory_order_relaxed);
  hot.attention.store(0, std::memory_order_relaxed);
  hot.registry = registry;
}

void hot_path_stop() {
  HotPath& hot = hot_path();
  if (hot.registry == nullptr) return;
  if (hot.sampling) switch_observer(hot, hot.registry->this_thread(), false);
  hot.registry = nullptr;
  hot.attention.store(0, std::memory_order_relaxed);
  Py_CLEAR(hot.on_boundary);
  Py_CLEAR(hot.on_exhausted);
  Py_CLEAR(hot.resolve);
}

double hot_path_cost_ns(int rounds, bool native_only) {
  HotPath& hot = hot_path();
  if (hot.registry == nullptr) return 0;
  static auto* scratch = new Recorder();  // fills up and then drops: what a push costs either way
  hot.scratch = scratch;
  const auto countdown = std::exchange(hot.countdown, INT32_MAX);
  double cost = 0;
  if (native_only) {
    cost = per_round_ns(rounds, [&] {
      put(scratch, EventKind::fetch_begin, now_ns());
      put(scratch, EventKind::fetch_end, now_ns(), 1, 0, kFetchBatch);
      put(scratch, EventKind::optimizer_end, now_ns(), 1);
      count_boundary(hot, scratch);
    });
  } else {
    PyObject* original = PyCFunction_New(&nothing_definition, nullptr);
    PyObject* capsule = PyCapsule_New(original, kOriginal, nullptr);
    PyObject* hooked = PyCFunction_New(&next_definition, capsule);
    PyObject* post = new_optimizer_post_hook();
    PyObject* types = PyImport_ImportModule("types");
    PyObject* iterator = types == nullptr ? nullptr : PyObject_CallMethod(types, "SimpleNamespace", nullptr);
    PyObject* one = PyLong_FromLong(1);
    if (iterator != nullptr && PyObject_SetAttr(iterator, source_name, one) == 0) {
      PyObject* arguments[] = {iterator, Py_None, Py_None};
      auto call = [&](PyObject* function, size_t count) {
        Py_XDECREF(PyObject_Vectorcall(function, arguments, count, nullptr));
      };
      const double with = per_round_ns(rounds, [&] { call(hooked, 1); call(post, 3); });
      cost = with - per_round_ns(rounds, [&] { call(original, 1); });
    }
    for (PyObject* object : {one, iterator, types, post, hooked, capsule, original}) Py_XDECREF(object);
    PyErr_Clear();
  }
  hot.countdown = countdown;
  hot.scratch = nullptr;
  return cost;
}

PyObject* new_optimizer_post_hook() { return PyCFunction_New(&post_definition, nullptr); }

PyObject* new_next(PyObject* original) {
  if (source_name == nullptr) source_name = PyUnicode_InternFromString("_gpuutil_source");
  Py_INCREF(original);
  PyObject* capsule = PyCapsule_New(original, kOriginal, [](PyObject* dying) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetPointer(dying, kOriginal)));
  });
  if (capsule == nullptr) return nullptr;
  PyObject* function = PyCFunction_New(&next_definition, capsule);
  Py_DECREF(capsule);
  if (function == nullptr) return nullptr;
  PyObject* method = PyInstanceMethod_New(function);
  Py_DECREF(function);
  return method;
}

}  // namespace gpuutil
