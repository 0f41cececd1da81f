"""A build without PyTorch says so in one line, with the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake on the path")
def test_configuring_without_torch_names_the_interpreter_and_the_command(tmp_path: Path):
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    python = bare / "bin/python"
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(alone LANGUAGES NONE)\n"
        f"include({ROOT}/csrc/cmake/GpuutilTorch.cmake)\n"
    )
    command = ["cmake", "-S", str(project), "-B", str(tmp_path / "b")]
    done = subprocess.run(
        [*command, f"-DPython_EXECUTABLE={python}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "gpuutil:" in line]
    assert len(said) == 1
    assert f"PyTorch is not importable by {python}" in said[0]
    assert "pip install ." in said[0]
    assert "--no-build-isolation" in said[0]
    assert "Traceback" not in done.stderr


def test_the_question_reaches_a_torch_that_an_isolated_build_hides(tmp_path: Path):
    pytest.importorskip("torch")
    if shutil.which("cmake") is None:
        pytest.skip("no cmake on the path")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError('not this one')\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(alone LANGUAGES NONE)\n"
        f"include({ROOT}/csrc/cmake/GpuutilTorch.cmake)\n"
        'message(STATUS "found ${GPUUTIL_TORCH_VERSION}")\n'
    )
    done = subprocess.run(
        [
            "cmake",
            "-S",
            str(tmp_path),
            "-B",
            str(tmp_path / "b"),
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(hidden)},
    )
    import torch

    assert f"found {torch.__version__}" in done.stdout, done.stderr
