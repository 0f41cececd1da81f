"""What the tests of kept workers share."""

from __future__ import annotations

import gc
import multiprocessing
import random
import time
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader

from gpuutil.hooks.dataloader.keep import Keeper
from gpuutil.hooks.dataloader.patch import patch_shutdown
from gpuutil.hooks.patching import PatchStack


@pytest.fixture
def kept():
    """kept(loader) -> Keeper, through which every iter(loader) goes from then on."""
    stack, keepers = PatchStack(), {}
    original = DataLoader.__iter__

    def __iter__(self: DataLoader) -> Any:
        keeper = keepers.get(id(self))
        if keeper is None:
            return original(self)
        iterator = keeper.reopen(self)
        if iterator is None:
            iterator = original(self)
        keeper.bind(iterator)
        return iterator

    def keep_(loader: DataLoader) -> Keeper:
        keepers[id(loader)] = Keeper(loader)
        return keepers[id(loader)]

    stack.replace(DataLoader, "__iter__", __iter__)
    patch_shutdown(stack)
    yield keep_
    for keeper in keepers.values():
        keeper.close()
    assert stack.undo() == []


@pytest.fixture(autouse=True)
def no_process_left():
    yield
    gc.collect()
    end = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.01)
    assert multiprocessing.active_children() == []


def seed_all() -> None:
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)


def states(*generators: Any) -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state(legacy=True)[1].tolist(),
        [g.get_state().tolist() for g in generators if isinstance(g, torch.Generator)],
        [g.getstate() for g in generators if isinstance(g, random.Random)],
    )


def run_kept(keeper: Keeper, loader: DataLoader, passes: int = 2) -> set[int]:
    """Passes until the workers were kept; their process ids."""
    keeper.request(True)
    for _ in range(passes):
        for _batch in loader:
            pass
    (parked,) = keeper._slot
    return {p.pid for p in parked.processes}
