"""fd_limit: raised where descriptors run short, without a trial, and given back."""

from __future__ import annotations

import os
import resource
import time

import loops
import pytest
from torch.utils.data import DataLoader

import gpuutil
from gpuutil.remedies.base import NotPossible
from gpuutil.remedies.fd_limit import FdLimit


def _limits() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_NOFILE)


@pytest.fixture(autouse=True)
def _low_limit():
    """A soft limit of 400 below the hard one, given back afterwards."""
    soft, hard = _limits()
    if 400 >= hard:
        pytest.skip("the hard limit is too low to raise anything to it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    give_back = resource.setrlimit
    yield
    give_back(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def many_open():
    """300 descriptors more."""
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]
    yield
    for descriptor in descriptors:
        os.close(descriptor)


def _reachable() -> int:
    return min(_limits()[1], 1 << 20)


def test_it_goes_up_to_the_hard_limit_and_back():
    remedy = FdLimit()
    offer = remedy.offer(None, None)
    assert (offer.value, offer.to, offer.exactness, offer.protective) == (400, _reachable(), "exact", True)
    remedy.apply(None, offer.to)
    assert _limits()[0] == offer.to
    held = remedy.offer(None, None)
    assert held.value == held.to == offer.to
    remedy.apply(None, 400)
    assert _limits()[0] == 400
    again = remedy.offer(None, None)
    assert (again.value, again.to) == (400, offer.to)


def test_a_limit_that_somebody_else_set_since_stays():
    remedy = FdLimit()
    remedy.apply(None, _reachable())
    resource.setrlimit(resource.RLIMIT_NOFILE, (410, _limits()[1]))
    assert remedy.offer(None, None).value == _reachable()  # what the controller was told, so that it does not wait
    remedy.restore()
    assert _limits()[0] == 410


def test_a_replay_where_the_limit_is_high_already_changes_nothing():
    remedy = FdLimit()
    remedy.apply(None, 390)
    assert _limits()[0] == 400
    remedy.apply(None, 1 << 40)  # from a machine that allows more
    assert _limits()[0] == _reachable()
    remedy.restore()
    assert _limits()[0] == 400


def test_at_the_hard_limit_there_is_a_refusal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    offer = FdLimit().offer(None, None)
    assert offer.value == offer.to and offer.refusal


def test_a_system_that_refuses_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(NotPossible, match="not allowed"):
        FdLimit().apply(None, 500)


def _train_until(done, seconds: float = 20.0) -> None:
    loader = DataLoader(loops.Numbers(64, seconds=0.001), batch_size=4)
    model = loops.small_model()
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        loops.train(loader, 1, model=model)


def test_a_run_that_nears_its_limit_is_guarded_without_a_trial_and_detach_gives_it_back(many_open):
    with gpuutil.attach(log_dir=False) as monitor:
        _train_until(lambda: any(row["remedy"] == "fd_limit" and row["outcome"] == "kept" for row in monitor.ledger))
        (row,) = [row for row in monitor.ledger if row["remedy"] == "fd_limit"]
        assert (row["outcome"], row["conclusion"], row["class"]) == ("kept", "protective", "exact")
        assert row["speedup"]["mid"] is None
        assert (row["changes"][0]["from"], row["changes"][0]["subject"]) == (400, 0)
        assert _limits()[0] == _reachable()
        assert "resource.setrlimit" in monitor.recipe()
        assert monitor.revert(row["id"]) == ""
        _train_until(lambda: _limits()[0] == 400)
        assert _limits()[0] == 400
        assert monitor.apply("fd_limit") == ""
        _train_until(lambda: _limits()[0] > 400)
        assert _limits()[0] == _reachable()
    assert _limits()[0] == 400


def test_a_run_that_only_watches_is_warned_and_left_alone(many_open):
    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        _train_until(lambda: any(f["id"] == "fd_limit" for f in monitor.findings))
        (finding,) = [f for f in monitor.findings if f["id"] == "fd_limit"]
        assert finding["severity"] == "warning" or finding["severity"] == "critical"
        assert _limits()[0] == 400
        assert monitor.ledger == []
