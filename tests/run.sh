#!/usr/bin/env bash
# Runs every test that needs no GPU: C++ with warnings as errors, C++ again under sanitizers, then
# Python. All of them run even where some fail; the status says whether any did.
#
#   bash tests/run.sh [cpu]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source examples/setup_env.sh

case ${1:-cpu} in
  cpu) ;;
  *) fail "there is no lane '$1'; the only one is cpu." ;;
esac

has_doctest() {
  printf '#include <doctest/doctest.h>\n' | "${CXX:-c++}" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

provide_doctest() {
  has_doctest && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing doctest-dev"
    apt-get install -y -q doctest-dev >/dev/null 2>&1 ||
      { apt-get update -q >/dev/null && apt-get install -y -q doctest-dev >/dev/null; } || true
    has_doctest && return
  fi
  fail "the C++ tests need doctest: install the package doctest-dev (Debian, Ubuntu)" \
    "or doctest-devel (Fedora)."
}

# cpp_tests FOLDER CMAKE_OPTION...
cpp_tests() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DGPUUTIL_PYTHON=OFF -DGPUUTIL_TESTS=ON \
    -DPython_EXECUTABLE="$PWD/$VENV_PYTHON" "$@" >"$folder.log" 2>&1 ||
    { cat "$folder.log"; return 1; }
  cmake --build "$folder" >"$folder.log" 2>&1 ||
    { grep -v '^\[[0-9]*/[0-9]*\] ' "$folder.log"; return 1; }
  ctest --test-dir "$folder" --output-on-failure
}

setup_environment test,examples
provide_doctest
mkdir -p build
failed=0

say "C++ tests"
cpp_tests build/tests -DGPUUTIL_WERROR=ON || failed=1

say "C++ tests under the address and undefined behaviour sanitizers"
# Debug for its assertions, -O1 because the statistics crawl without. Warnings are no errors here:
# what sanitizers insert misleads the compiler's own flow analysis.
cpp_tests build/sanitized -DGPUUTIL_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" || failed=1

say "Python tests"
"$VENV_PYTHON" -m pytest --no-skips tests/python || failed=1
exit $failed
