"""Workers that outlive the epoch: bit for bit the batches and draws of a loader without that."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import random
import threading
import types
from typing import Any

import numpy
import pytest
import torch
from shapes import Eager, Noisy, Ragged, Squares, firsts
from torch.utils.data import DataLoader, RandomSampler, Subset
from torch.utils.data import _utils as torch_utils
from torch.utils.data._utils import pin_memory as torch_pin
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from gpuutil.hooks.dataloader import capability, handover, reseed
from gpuutil.hooks.dataloader.live import LiveLoader
from keeping import kept, no_process_left, run_kept, seed_all, states  # noqa: F401


def shape(name: str, method: str) -> tuple[DataLoader, tuple[Any, ...]]:
    """A loader of a kind, and the generators of the user's that belong to it."""
    common: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": method}
    data = Noisy()
    if name == "sequential":
        return DataLoader(data, 4, **common), ()
    if name == "shuffled":
        return DataLoader(data, 5, shuffle=True, prefetch_factor=1, **common), ()
    if name == "own generator":
        own = torch.Generator().manual_seed(5)
        return DataLoader(data, 5, shuffle=True, generator=own, drop_last=True, **common), (own,)
    if name == "replacement":
        own = torch.Generator().manual_seed(5)
        sampler = RandomSampler(data, replacement=True, num_samples=40, generator=own)
        return DataLoader(data, 3, sampler=sampler, timeout=60, **common), (own,)
    if name == "eager sampler":
        sampler = Eager(24, 3)
        return DataLoader(data, 4, sampler=sampler, **common), (sampler.own,)
    if name == "eager items":
        sampler = Eager(24, 3)
        return DataLoader(data, batch_size=None, sampler=sampler, **common), (sampler.own,)
    if name == "batch sampler":
        return DataLoader(data, batch_sampler=Ragged(24, 2), **common), ()
    if name == "single items":
        return DataLoader(data, batch_size=None, **common), ()
    if name == "less batches than workers":
        common["num_workers"] = 3
        return DataLoader(Subset(data, range(4)), 4, **common), ()
    raise ValueError(name)


SHAPES = [
    "sequential",
    "shuffled",
    "own generator",
    "replacement",
    "eager sampler",
    "eager items",
    "batch sampler",
    "single items",
    "less batches than workers",
]


def epochs(loader: DataLoader, generators: tuple[Any, ...], count: int, at_batch: Any = None) -> Any:
    """(what was seen and drawn, the workers of each epoch)."""
    seen, pids = [], []
    seed_all()
    for epoch in range(count):
        of_epoch: set[int] = set()
        for i, batch in enumerate(loader):
            if at_batch is not None:
                at_batch(epoch, i)
            rows = batch.reshape(-1, batch.shape[-1])
            of_epoch |= {int(p) for p in rows[:, -1]}
            seen.append((rows[:, :-1].tolist(), states(*generators), torch.rand(()).item()))
        seen.append(states(*generators))
        pids.append(of_epoch)
    return seen, pids


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "fork") for name in SHAPES), ("own generator", "forkserver"), ("eager items", "forkserver")],
)
def test_everything_is_bit_for_bit_what_it_is_without(kept, name, method):
    expected, fresh = epochs(*shape(name, method), 6)
    loader, generators = shape(name, method)
    keeper = kept(loader)

    def switch(epoch: int, batch: int) -> None:
        if batch == 0 and epoch in (0, 4):
            keeper.request(epoch == 0)
        if batch == 0:
            assert keeper.reusing == (epoch in (2, 3, 4)) and keeper.problem is None
            assert keeper.in_effect == (epoch in (2, 3, 5))

    got, pids = epochs(loader, generators, 6, switch)
    assert got == expected
    assert len(set().union(*fresh)) >= 6
    assert pids[2] <= pids[1] and pids[3] <= pids[1] and pids[4] <= pids[1]
    assert not pids[0] & pids[1] and not pids[5] & pids[1]
    assert loader.persistent_workers is False and loader._iterator is None


def test_each_pass_has_its_own_iterator_of_torchs_own_class(kept):
    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    iterators = []
    for _ in range(3):
        iterators.append(iter(loader))
        assert firsts(iterators[-1]) == list(range(8))
    assert keeper.reusing and len({id(i) for i in iterators}) == 3
    assert {type(i) for i in iterators} == {_MultiProcessingDataLoaderIter}
    again = iter(loader)
    assert all(next(old, None) is None for old in iterators)
    assert firsts(again) == list(range(8))


def test_the_sampler_is_asked_as_often_as_by_the_stock_loader(kept):
    samplers = Eager(24, 3), Eager(24, 3)
    for sampler in samplers:
        loader = DataLoader(Squares(24, 0), batch_size=None, sampler=sampler, num_workers=2)
        if sampler is samplers[1]:
            kept(loader).request(True)
        for _ in range(4):
            list(loader)
    assert samplers[0].calls == samplers[1].calls == 8


def test_two_iterators_at_once_do_not_share_workers(kept):
    def pairs(loader: DataLoader) -> tuple[list[Any], list[set[int]]]:
        rows, pids = [], [set(), set()]
        for two in zip(loader, loader, strict=True):
            rows.append([b[:, :-1].tolist() for b in two])
            for side, batch in zip(pids, two, strict=True):
                side |= {int(p) for p in batch[:, -1]}
        return rows, pids

    plain = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    seed_all()
    expected = [pairs(plain)[0] for _ in range(4)]
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    seed_all()
    got = [pairs(loader) for _ in range(4)]
    assert [rows for rows, _ in got] == expected
    assert all(not one & other for _, (one, other) in got)
    assert got[1][1][0] == got[0][1][0] and len(keeper._slot) == 1


def test_an_evaluation_loader_in_between_is_left_alone(kept):
    train = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    check = DataLoader(Noisy(8), 4, num_workers=1)
    keeper = kept(train)
    keeper.request(True)
    for _ in range(3):
        assert sorted(firsts(train)) == list(range(24))
        assert firsts(check) == list(range(8))
    assert keeper.reusing


def test_the_check_of_torchs_code_passes_here_and_starts_nothing():
    before, threads = states(), threading.active_count()
    assert capability.rehearse("keep") is None
    assert states() == before and threading.active_count() == threads


def test_the_check_of_torchs_code_finds_a_constructor_that_works_in_another_way(monkeypatch):
    class Other(handover._There):
        def Queue(self) -> Any:
            return super().Queue() if self._given else super().Event()

    monkeypatch.setattr(handover, "_There", Other)
    assert "rehearsal" in capability.rehearse("keep")


def test_the_seed_needs_nothing_of_ours_in_the_worker():
    task = reseed.Task((3, [4, 5]))
    task.calls = reseed.seeding(123, 0)
    payload = pickle.dumps(task)
    assert b"gpuutil" not in payload
    seed_all()
    torch_utils.worker._worker_info = torch_utils.worker.WorkerInfo(
        id=0, num_workers=1, seed=0, dataset=None
    )
    try:
        assert pickle.loads(payload) == (3, [4, 5])
        assert torch_utils.worker._worker_info.seed == 123
    finally:
        torch_utils.worker._worker_info = None
    got = states()
    random.seed(123)
    torch.manual_seed(123)
    numpy.random.seed(torch_utils.worker._generate_state(123, 0))
    assert states() == got


def test_a_pin_thread_is_started_for_each_pass_and_none_is_left(kept, monkeypatch):
    device = types.SimpleNamespace(type="cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: device)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
    monkeypatch.setattr(torch_pin, "pin_memory", lambda data, device=None: data + 1000)
    number = torch.get_num_threads()
    try:
        loader = DataLoader(Squares(8, 0), 2, num_workers=2, pin_memory=True)
        keeper = kept(loader)
        pids = run_kept(keeper, loader)
        for _ in range(3):
            iterator = iter(loader)
            thread = iterator._pin_memory_thread
            assert firsts(iterator) == [1000 + i for i in range(8)] and keeper.reusing
            assert not thread.is_alive()
        assert {p.pid for p in keeper._slot[0].processes} == pids
        for _batch in loader:
            break
        gc.collect()
        assert multiprocessing.active_children() == []
    finally:
        torch.set_num_threads(number)


def test_it_goes_together_with_more_workers_and_depth(kept):
    loader = DataLoader(Noisy(60, 0.002), 2, num_workers=2)
    live, keeper = LiveLoader(loader), kept(loader)
    keeper.request(True)
    try:
        for epoch in range(5):
            iterator = iter(loader)
            live.bind(iterator)
            got = []
            for i, batch in enumerate(iterator):
                got.append(batch)
                if i == 3 and epoch == 1:
                    live.request(workers=3, prefetch=4)
                if i == 3 and epoch == 3:
                    live.undo_all()
            assert firsts(got) == list(range(60))
            assert keeper.reusing == (epoch > 0)
    finally:
        live.close()
