"""Shared by all Python tests: nothing of one test may be left for the next."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# A shell without job control starts background jobs with Ctrl-C ignored, and every child of ours would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails the run")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a lane that installs all that the tests need, whatever was skipped is a hole nobody sees."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--no-skips") or session.exitstatus != 0:
        return
    if reporter.stats.get("skipped"):
        reporter.write_line("\nskipped tests, in a run where none may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
