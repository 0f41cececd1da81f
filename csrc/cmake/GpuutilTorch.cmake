# The target gpuutil_torch: headers and libraries of the PyTorch that the building interpreter
# imports. No find_package(Torch): on a CUDA build of PyTorch it enables the CUDA language and wants
# nvcc.
#
# PYTHONPATH is unset for the question because that is how pip hides the environment's own packages
# from an isolated build: without it the interpreter sees the PyTorch that the module will run with.
# Where isolation is a whole environment of its own (uv, build), PyTorch stays invisible and the
# message below says what to do.
set(_ask [=[
import importlib.util, os, sys
if importlib.util.find_spec("torch") is None:
    sys.exit(3)
import torch
# Not torch.__file__: where PyTorch is an editable install, that is in its sources.
print(os.path.dirname(os.path.realpath(torch._C.__file__)), torch.__version__,
      torch.version.git_version or "", int(torch.compiled_with_cxx11_abi()), sep=";")
]=])
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH "${Python_EXECUTABLE}" -c "${_ask}"
  RESULT_VARIABLE _failed
  OUTPUT_VARIABLE _answer
  ERROR_VARIABLE _error
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(_failed EQUAL 3)
  # The leading space keeps CMake from breaking the line.
  message(FATAL_ERROR " gpuutil: PyTorch is not importable by ${Python_EXECUTABLE}; "
    "install torch where gpuutil is to run, then there: pip install . "
    "(with uv or build, which build in an environment of their own: install scikit-build-core, "
    "pybind11, cmeel-fmt and ninja there too, and add --no-build-isolation)")
elseif(_failed)
  message(FATAL_ERROR
    " gpuutil: ${Python_EXECUTABLE} finds PyTorch but fails to import it:\n${_error}")
endif()

list(GET _answer 0 GPUUTIL_TORCH_DIR)
list(GET _answer 1 GPUUTIL_TORCH_VERSION)
list(GET _answer 2 GPUUTIL_TORCH_GIT)
list(GET _answer 3 GPUUTIL_TORCH_CXX11_ABI)
# The device-agnostic allocator interface that hooks/torch reads begins with 2.9.
if(GPUUTIL_TORCH_VERSION VERSION_LESS 2.9)
  message(FATAL_ERROR " gpuutil needs PyTorch 2.9 or newer, and ${Python_EXECUTABLE} has "
    "${GPUUTIL_TORCH_VERSION}.")
endif()
message(STATUS "gpuutil: PyTorch ${GPUUTIL_TORCH_VERSION} in ${GPUUTIL_TORCH_DIR}")

add_library(gpuutil_torch INTERFACE)
target_include_directories(gpuutil_torch SYSTEM INTERFACE ${GPUUTIL_TORCH_DIR}/include
                           ${GPUUTIL_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(gpuutil_torch INTERFACE
  NDEBUG  # in every build type: the headers' checks fail against a release build of PyTorch
  _GLIBCXX_USE_CXX11_ABI=${GPUUTIL_TORCH_CXX11_ABI}
  GPUUTIL_TORCH_VERSION="${GPUUTIL_TORCH_VERSION}"
  GPUUTIL_TORCH_GIT="${GPUUTIL_TORCH_GIT}"
  GPUUTIL_TORCH_CXX11_ABI=${GPUUTIL_TORCH_CXX11_ABI})
target_link_libraries(gpuutil_torch INTERFACE ${GPUUTIL_TORCH_DIR}/lib/libtorch_cpu.so
                      ${GPUUTIL_TORCH_DIR}/lib/libc10.so)
