"""Pinned memory without an accelerator: torch's pinning is replaced by one that leaves a mark."""

from __future__ import annotations

import types

import pytest
import torch
from shapes import Squares, bound, until_effective
from torch.utils.data import DataLoader
from torch.utils.data._utils import pin_memory as torch_pin

MARK = 1_000_000


@pytest.fixture
def marked(monkeypatch):
    """Batches that are pinned once carry one mark, twice two."""
    device = types.SimpleNamespace(type="cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: device)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
    monkeypatch.setattr(torch_pin, "pin_memory", lambda data, device=None: data + MARK)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)  # torch's pin thread sets it for threads to come


@pytest.mark.parametrize("workers", [0, 2])
def test_every_batch_is_pinned_once_whoever_made_it(opened, marked, workers):
    loader = DataLoader(Squares(240), 2, num_workers=workers, pin_memory=True)
    live = opened(loader)
    iterator = bound(live, loader)
    got = [next(iterator) for _ in range(3)]
    live.request(workers=workers + 2, prefetch=3)
    got += until_effective(live, iterator)
    got += [next(iterator) for _ in range(20)]
    live.undo_all()
    got += [next(iterator) for _ in range(20)]
    live.request(workers=workers + 1)
    got += until_effective(live, iterator)
    live.close()
    got += list(iterator)
    assert [int(i) for b in got for i in b[:, 0]] == [MARK + i for i in range(240)]


def test_delivery_as_it_comes_beside_a_pin_thread_is_refused(opened, marked):
    loader = DataLoader(Squares(40), 2, num_workers=1, pin_memory=True, in_order=False)
    assert "in_order=False" in opened(loader).supported(iter(loader))
