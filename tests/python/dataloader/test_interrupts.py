"""Ctrl-C anywhere inside: nothing doubled, nothing reordered, nothing left, and at most the batch
in hand is lost."""

from __future__ import annotations

import collections

import pytest
from interrupts import Pressed, run_with_interrupt
from torch.utils.data import DataLoader

from gpuutil.hooks.dataloader import rehearsal
from gpuutil.hooks.dataloader.live import LiveLoader

LENGTH = 14


def session(workers, at):
    schedule = rehearsal.Schedule()
    loader = DataLoader(range(LENGTH), batch_size=None, num_workers=workers)
    if workers:
        rehearsal.rehearse(loader, schedule)
    live = LiveLoader(loader, rehearsal.RehearsalPool(rehearsal.RehearsalTransport(schedule)))
    got, pressed = [], []
    iterator = iter(loader)
    live.bind(iterator)

    def consume():
        while True:
            try:
                if len(got) == 3:
                    live.request(workers=workers + 2)
                if len(got) == 6:
                    live.request(prefetch=3)
                if len(got) == 10:
                    live.request(workers=workers, prefetch=2)
                got.append(int(next(iterator)))
            except StopIteration:
                return
            except Pressed:
                pressed.append(1)
            except rehearsal.Starved:
                got.append("starved")
                return

    seen, where = run_with_interrupt(consume, at)
    live.close()
    left = [w for w in live.pool._everyone if not w.ended.is_set()]
    return seen, where, got, left, type(iterator).__name__


# Between torch's own queue and us, for tasks that torch had sent before we came: torch has the same
# window.
TORCHS_OWN = ("stock_transport.py",)


@pytest.mark.parametrize(("workers", "share"), [(0, 13), (2, 13)])
def test_ctrl_c_at_any_place_of_our_code(workers, share):
    total = session(workers, 10**9)[0]
    assert total > 500
    lost = collections.Counter()
    for at in range(1, total + 1, share):
        _, where, got, left, kind = session(workers, at)
        assert not left and "Live" not in kind, (at, where, left, kind)
        if got != list(range(LENGTH)):
            if "starved" in got:
                assert where is not None and where.startswith(TORCHS_OWN), (at, where, got)
                continue
            assert got == sorted(set(got)) and len(got) == LENGTH - 1, (at, where, got)
            lost[where] += 1
    assert sum(lost.values()) < total / share / 8, lost
