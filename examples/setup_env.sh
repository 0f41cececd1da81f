# shellcheck shell=bash
# Sourced by examples/demo.sh and tests/run.sh, with the checkout's root as working directory.
#
#   setup_environment EXTRAS     makes .venv with PyTorch in it and gpuutil built for that PyTorch
#
# EXTRAS are the comma-separated extras of pyproject.toml that the caller needs. A second call with
# nothing changed costs a fraction of a second. Nothing outside of the checkout is written to.
#
# GPUUTIL_PYTHON  the interpreter to start from. If it imports torch, that torch is used, in place:
#                 .venv gets a link to that environment's packages, which are never changed.
# GPUUTIL_TORCH   what to install where there is no torch: a pip requirement, with pip's options
#                 behind it if you like ("torch==2.13.0 --index-url ..."), or "skip" to install
#                 none. Default: torch==2.13.0.

VENV=.venv
VENV_PYTHON=$VENV/bin/python
BUILD_TOOLS=(scikit-build-core pybind11 cmeel-fmt)  # [build-system] of pyproject.toml
STAMP=$VENV/gpuutil-built

say() { printf 'gpuutil: %s\n' "$*"; }

fail() {
  printf 'gpuutil: %s\n' "$*" >&2
  exit 1
}

setup_environment() {
  local extras=$1
  [ "$(uname -s)" = Linux ] || fail "only Linux is supported, and this is $(uname -s)."
  export PIP_DISABLE_PIP_VERSION_CHECK=1
  if ! is_current "$extras"; then
    make_venv
    provide_torch
    provide_tools
    check_compiler
    build "$extras"
  fi
  export PATH="$PWD/$VENV/bin:$PATH"
}

# ---- Python

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

is_supported() { case $1 in 3.1[0-4]) true ;; *) false ;; esac; }

# Prints the interpreter to make .venv from.
find_python() {
  local name version
  if [ -n "${GPUUTIL_PYTHON:-}" ]; then
    version=$(python_version "$GPUUTIL_PYTHON") || fail "GPUUTIL_PYTHON=$GPUUTIL_PYTHON does not run."
    is_supported "$version" ||
      fail "GPUUTIL_PYTHON=$GPUUTIL_PYTHON is Python $version; gpuutil needs 3.10 to 3.14."
    command -v "$GPUUTIL_PYTHON"
    return
  fi
  for name in python3 python3.{14,13,12,11,10}; do
    version=$(python_version "$name") && is_supported "$version" && command -v "$name" && return
  done
  version=$(python_version python3) || version=missing
  fail "no Python 3.10 to 3.14 found (python3 is $version); name one in GPUUTIL_PYTHON."
}

# Where an interpreter keeps its packages: one prefix an environment.
prefix_of() { "$1" -c 'import os, sys; print(os.path.realpath(sys.prefix))'; }

make_venv() {
  local python host
  python=$(find_python) || exit 1
  if [ -x "$VENV_PYTHON" ]; then
    "$VENV_PYTHON" -m pip --version >/dev/null 2>&1 ||
      fail "$VENV is not a working environment; remove it and run this again."
    is_supported "$(python_version "$VENV_PYTHON")" ||
      fail "$VENV is Python $(python_version "$VENV_PYTHON"), and gpuutil needs 3.10 to 3.14;" \
        "remove it and run this again."
    if [ -n "${GPUUTIL_PYTHON:-}" ]; then
      host=$(prefix_of "$python")
      [ "$host" = "$(prefix_of "$VENV_PYTHON")" ] ||
        [ "$host" = "$(cat "$VENV/gpuutil-host" 2>/dev/null)" ] ||
        fail "$VENV was made from another Python than GPUUTIL_PYTHON; remove it and run this again."
    fi
    return
  fi
  say "making $VENV from $python"
  "$python" -m venv "$VENV" >/dev/null || {
    rm -rf "$VENV"
    fail "$python cannot make a virtual environment; install its venv module" \
      "(python3-venv on Debian and Ubuntu)."
  }
  prefix_of "$python" >"$VENV/gpuutil-host"
}

# ---- PyTorch

# A .pth file in .venv that adds the package folders of another interpreter behind .venv's own.
link_packages_of() {
  local folder
  folder=$("$VENV_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$1" - >"$folder/gpuutil_host_packages.pth" <<'PYTHON'
import os
import sys

import torch

folders = [os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))]
folders += [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
for folder in dict.fromkeys(os.path.abspath(p) for p in folders):
    print(f"import site; site.addsitedir({folder!r})")
PYTHON
}

has_torch() { "$1" -c 'import torch' >/dev/null 2>&1; }

# Whether a torch is there, importable or not.
finds_torch() {
  "$1" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null
}

# Only a torch that was put here by GPUUTIL_TORCH is replaced by another GPUUTIL_TORCH.
another_torch_is_wanted() {
  [ -n "${GPUUTIL_TORCH:-}" ] && [ "$GPUUTIL_TORCH" != skip ] &&
    [ -f "$VENV/gpuutil-torch" ] && [ "$GPUUTIL_TORCH" != "$(cat "$VENV/gpuutil-torch")" ]
}

provide_torch() {
  local wanted=${GPUUTIL_TORCH:-torch==2.13.0} words
  if [ -n "${GPUUTIL_PYTHON:-}" ] && ! finds_torch "$VENV_PYTHON" &&
    has_torch "$GPUUTIL_PYTHON"; then
    say "using the torch of $GPUUTIL_PYTHON"
    link_packages_of "$GPUUTIL_PYTHON"
  fi
  if finds_torch "$VENV_PYTHON" && ! another_torch_is_wanted; then
    has_torch "$VENV_PYTHON" ||
      fail "torch is there but does not import: $("$VENV_PYTHON" -c 'import torch' 2>&1 | tail -n 1)"
    return
  fi
  [ "$wanted" != skip ] ||
    fail "there is no torch, and GPUUTIL_TORCH=skip: install one with" \
      "$VENV_PYTHON -m pip install torch."
  say "installing $wanted: where that is a CUDA build, as Linux gets by default, it is several GB," \
    "and about 200 MB to download where it is a CPU build"
  read -ra words <<<"$wanted"
  pip_install "${words[@]}" numpy
  printf '%s\n' "$wanted" >"$VENV/gpuutil-torch"
}

# ---- Tools and build

pip_install() {
  "$VENV_PYTHON" -m pip install "$@" ||
    fail "pip could not install the packages named above: it needs a package index" \
      "(PIP_INDEX_URL) or a folder of wheels (PIP_FIND_LINKS)."
}

provide_tools() {
  local tools=("${BUILD_TOOLS[@]}")
  command -v ninja >/dev/null || tools+=(ninja)
  cmake_is_new_enough || tools+=(cmake)
  pip_install -q "${tools[@]}"
}

cmake_is_new_enough() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
  # shellcheck disable=SC2086  # two words
  set -- ${version:-0 0}
  [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 22 ]; }
}

check_compiler() {
  local name include
  for name in ${CXX:-c++ g++ clang++}; do
    if printf '#include <concepts>\n#include <span>\nint main() {}\n' |
      "$name" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then
      include=$("$VENV_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
      [ -f "$include/Python.h" ] ||
        fail "Python.h is missing in $include; install Python's headers" \
          "(python3-dev on Debian and Ubuntu)."
      return
    fi
  done
  fail "no C++20 compiler found (looked for ${CXX:-c++, g++, clang++});" \
    "install g++ 11 or newer, or name one in CXX."
}

# Everything that the installed build depends on, as one hash. Empty while something is missing.
fingerprint() {
  [ -x "$VENV_PYTHON" ] || return 0
  local state
  state=$("$VENV_PYTHON" - 2>/dev/null <<'PYTHON'
import importlib.util
import pathlib
import sys
import sysconfig

torch = importlib.util.find_spec("torch")  # finding it takes no second, importing it does
package = pathlib.Path(sysconfig.get_path("platlib"), "gpuutil")
if torch is None or not list(package.glob("_core*.so")) or not list(package.glob("_torch*.so")):
    sys.exit(1)
print(sys.version, torch.origin)
print(pathlib.Path(torch.origin).with_name("version.py").read_text())
PYTHON
  ) || return 0
  {
    printf '%s\n' "$PWD" "$state" "${CXX:-}"
    find csrc hooks CMakeLists.txt pyproject.toml -type f \
      \( -name '*.cpp' -o -name '*.h' -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.toml' \) \
      -print0 | sort -z | xargs -0 sha256sum
  } | sha256sum
}

# The stamp holds the fingerprint and the extras that are installed.
is_current() {
  local hash extra have
  [ -f "$STAMP" ] || return 1
  # What was asked for by variable has to be looked at again.
  [ -z "${GPUUTIL_PYTHON:-}${GPUUTIL_TORCH:-}" ] || [ "$(asked)" = "$(sed -n 3p "$STAMP")" ] || return 1
  hash=$(fingerprint)
  [ -n "$hash" ] && [ "$hash" = "$(sed -n 1p "$STAMP")" ] || return 1
  have=,$(sed -n 2p "$STAMP"),
  for extra in ${1//,/ }; do
    [[ $have == *,$extra,* ]] || return 1
  done
}

asked() { printf '%s\n' "${GPUUTIL_PYTHON:-} ${GPUUTIL_TORCH:-}"; }

build() {
  local extras=$1
  if [ -f "$STAMP" ]; then  # keep what an earlier caller asked for
    extras=$(printf '%s\n' "$extras" "$(sed -n 2p "$STAMP")" | tr ',' '\n' | sort -u | paste -sd, -)
    extras=${extras#,}
  fi
  say "building (a minute or two the first time)"
  rm -f "$STAMP.new"
  PATH="$PWD/$VENV/bin:$PATH" \
    "$VENV_PYTHON" -m pip install -q --no-build-isolation -e ".[$extras]" ||
    fail "the build failed, or a package of the extras $extras could not be installed: see above."
  { fingerprint; printf '%s\n' "$extras"; asked; } >"$STAMP.new"
  mv "$STAMP.new" "$STAMP"
}
