"""Shared by all Python tests: nothing of one test may be left for the next."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _detached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Every test starts and ends without a monitor, in an empty folder, with none of our variables set."""
    for name in list(os.environ):
        if name.startswith("GPUUTIL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield
    attach = sys.modules.get("gpuutil.attach")
    if attach is not None and attach._current is not None:
        attach._current.detach()
