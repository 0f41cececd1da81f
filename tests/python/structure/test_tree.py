"""The shape of the repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOP = {"CMakeLists.txt", "csrc", "python", "hooks", "examples", "tests", "pyproject.toml", "README.md"}
ALSO = {"LICENSE", "CHANGELOG.md"}


def _tracked() -> list[str]:
    try:
        done = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: nothing says which files belong to the project")
    return done.stdout.split()


def test_top_level_holds_exactly_what_was_agreed():
    top = {path.split("/")[0] for path in _tracked()}
    assert {name for name in top if not name.startswith(".")} - ALSO == TOP


def test_the_hooks_folder_is_reached_through_a_relative_link():
    link = ROOT / "python/gpuutil/hooks"
    assert link.is_symlink() and os.readlink(link) == "../../hooks"


def test_no_source_file_is_longer_than_the_cap():
    long = []
    for path in _tracked():
        if path.endswith((".h", ".cpp", ".py", ".js")) and "/data/" not in path:
            lines = (ROOT / path).read_text().count("\n") if (ROOT / path).is_file() else 0
            if lines > 600:
                long.append(f"{path}: {lines}")
    assert not long, long
