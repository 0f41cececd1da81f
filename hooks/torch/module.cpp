// The Python module `gpuutil._torch`: plain C API, so that it carries no second copy of a binding
// library beside PyTorch's own. Loaded only if it was built for the running PyTorch
// (hooks/torch_module.py).
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <iterator>

#include "device_memory.h"
#include "op_observer.h"

namespace {

using gpuutil::torch_hooks::DeviceMemory;

PyObject* connect(PyObject* /*module*/, PyObject* capsule) {
  const auto* table = static_cast<const GpuutilRecorderTable*>(
      PyCapsule_GetPointer(capsule, GPUUTIL_RECORDER_NAME));
  if (table == nullptr) return nullptr;
  if (table->size < sizeof(GpuutilRecorderTable)) {
    PyErr_SetString(PyExc_ValueError, "the recorder table is older than this module");
    return nullptr;
  }
  gpuutil::torch_hooks::connect_observer(table);
  Py_RETURN_NONE;
}

PyObject* disconnect(PyObject* /*module*/, PyObject* /*none*/) {
  gpuutil::torch_hooks::disconnect_observer();
  Py_RETURN_NONE;
}

struct Field {
  const char* name;
  int64_t DeviceMemory::* value;
};

constexpr Field kFields[] = {
    {"allocated_bytes", &DeviceMemory::allocated_bytes},
    {"allocated_peak_bytes", &DeviceMemory::allocated_peak_bytes},
    {"reserved_bytes", &DeviceMemory::reserved_bytes},
    {"reserved_peak_bytes", &DeviceMemory::reserved_peak_bytes},
    {"active_bytes", &DeviceMemory::active_bytes},
    {"requested_bytes", &DeviceMemory::requested_bytes},
    {"inactive_split_bytes", &DeviceMemory::inactive_split_bytes},
    {"segments", &DeviceMemory::segments},
    {"alloc_retries", &DeviceMemory::alloc_retries},
    {"out_of_memory", &DeviceMemory::out_of_memory},
    {"device_allocs", &DeviceMemory::device_allocs},
    {"device_frees", &DeviceMemory::device_frees},
};
static_assert(sizeof(DeviceMemory) == std::size(kFields) * sizeof(int64_t));

PyObject* device_memory_stats(PyObject* /*module*/, PyObject* args) {
  const char* name = nullptr;
  int index = 0;
  if (!PyArg_ParseTuple(args, "si", &name, &index)) return nullptr;
  const auto type = gpuutil::torch_hooks::device_type_of(name);
  if (!type) {
    return PyErr_Format(PyExc_ValueError, "device_type: PyTorch knows no device type '%s'", name);
  }
  const auto memory = gpuutil::torch_hooks::read_device_memory(*type, index);
  if (!memory) Py_RETURN_NONE;
  PyObject* result = PyDict_New();
  if (result == nullptr) return nullptr;
  for (const Field& field : kFields) {
    PyObject* value = PyLong_FromLongLong((*memory).*field.value);
    if (value == nullptr || PyDict_SetItemString(result, field.name, value) != 0) {
      Py_XDECREF(value);
      Py_DECREF(result);
      return nullptr;
    }
    Py_DECREF(value);
  }
  return result;
}

PyMethodDef kMethods[] = {
    {"connect", connect, METH_O,
     "connect(capsule)\n\nTakes the recorder table of _core and gives it the switch of the "
     "operator observer."},
    {"disconnect", disconnect, METH_NOARGS,
     "disconnect()\n\nRemoves the operator observer if it is in place and takes the switch back."},
    {"device_memory_stats", device_memory_stats, METH_VARARGS,
     "device_memory_stats(device_type, index) -> dict | None\n\nStatistics of the caching "
     "allocator in bytes and "
     "counts; None where there is no such allocator or it is not in use yet."},
    {nullptr, nullptr, 0, nullptr},
};

int fill_module(PyObject* module) {
  PyObject* built_for =
      Py_BuildValue("(ssi)", GPUUTIL_TORCH_VERSION, GPUUTIL_TORCH_GIT, GPUUTIL_TORCH_CXX11_ABI);
  if (built_for == nullptr) return -1;
  const int failed = PyModule_AddObjectRef(module, "built_for", built_for);
  Py_DECREF(built_for);
  return failed;
}

PyModuleDef_Slot kSlots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(fill_module)},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};

PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    "gpuutil._torch",
    "The part of gpuutil that is compiled against LibTorch. built_for = (version, git hash, C++11 "
    "ABI).",
    0,
    kMethods,
    kSlots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__torch() { return PyModuleDef_Init(&kModule); }
