# fmt as a header-only library: the system's, or the headers that PyPI's cmeel-fmt brings (found
# through CMAKE_PREFIX_PATH or the interpreter that builds).
find_package(fmt 9 CONFIG QUIET)
if(NOT fmt_FOUND)
  find_package(Python QUIET COMPONENTS Interpreter)
  if(Python_FOUND)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c
              "import importlib.metadata as m; print(m.distribution('cmeel-fmt').locate_file('cmeel.prefix'))"
      OUTPUT_VARIABLE GPUUTIL_CMEEL_PREFIX
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(GPUUTIL_CMEEL_PREFIX)
    find_package(fmt 9 CONFIG QUIET PATHS ${GPUUTIL_CMEEL_PREFIX} NO_DEFAULT_PATH)
  endif()
endif()
if(NOT fmt_FOUND)
  message(FATAL_ERROR " gpuutil needs fmt 9 or newer: pip install cmeel-fmt, "
    "or install the system's package (libfmt-dev).")
endif()
message(STATUS "gpuutil: fmt ${fmt_VERSION}")
