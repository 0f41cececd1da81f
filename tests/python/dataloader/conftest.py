"""Shared by the loader tests."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from gpuutil.hooks.dataloader.live import LiveLoader

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def nothing_left():
    """No test leaves a process or a thread."""
    yield
    end = time.monotonic() + 10
    while time.monotonic() < end:
        threads = [t.name for t in threading.enumerate() if t.name.startswith("gpuutil")]
        left = [p.name for p in multiprocessing.active_children() if p.name.startswith("gpuutil")]
        if not threads and not left:
            return
        time.sleep(0.01)
    pytest.fail(f"left behind: {threads} {left}")


@pytest.fixture
def opened():
    """open(loader) -> LiveLoader, closed after the test."""
    lives = []

    def open_(loader: DataLoader) -> LiveLoader:
        lives.append(LiveLoader(loader))
        return lives[-1]

    yield open_
    for live in lives:
        live.close()
