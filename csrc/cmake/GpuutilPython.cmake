# The interpreter to build for, with the headers of its C API.
find_package(Python 3.10 QUIET COMPONENTS Interpreter)
if(NOT Python_Interpreter_FOUND)
  message(FATAL_ERROR
    " gpuutil needs Python 3.10 or newer: name one with -DPython_EXECUTABLE=/path/to/python.")
endif()
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR " gpuutil needs the C headers of ${Python_EXECUTABLE}: "
    "install the package that brings Python.h (python3-dev or python3-devel).")
endif()
