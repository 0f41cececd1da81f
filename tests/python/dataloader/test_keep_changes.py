"""Workers that outlive the epoch: not where the data set or the loader was changed, and where it is refused."""

from __future__ import annotations

import os
import random
import time
import types
from typing import Any

import numpy
import pytest
import torch
from shapes import Items, Noisy, Squares, firsts, init
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from gpuutil.hooks.dataloader import keep
from gpuutil.hooks.dataloader.keep import Keeper
from gpuutil.hooks.dataloader.refusal import NotPossible
from keeping import kept, no_process_left, run_kept, seed_all, states  # noqa: F401


class Told(Dataset):
    size = 1

    def __init__(self) -> None:
        self.offset, self.array = 0, numpy.zeros(1_000_000, dtype=numpy.int64)
        self.tensor, self.nested = torch.zeros(4, dtype=torch.int64), {"list": [0]}
        self.function = lambda: 0

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return (
            self.offset + int(self.array[-1]) + int(self.tensor[3]) + self.nested["list"][0]
        ) + self.function() + (self.size - 1) + (helper() - 1) + LIST[0]


FACTOR = 1


LIST = [0]


def helper() -> int:
    return FACTOR


def _change(data: Told, what: str) -> None:
    if what == "attribute":
        data.offset = 1
    elif what == "array":
        data.array[-1] = 1
    elif what == "tensor":
        data.tensor[3] = 1
    elif what == "nested":
        data.nested["list"][0] = 1
    elif what == "function":
        data.function = lambda: 1
    elif what == "class":
        Told.size = 2
    elif what == "global":
        globals()["FACTOR"] = 2
    elif what == "global list":
        LIST[0] = 1


@pytest.mark.parametrize(
    "what", ["attribute", "array", "tensor", "nested", "function", "class", "global", "global list"]
)
def test_a_data_set_that_was_changed_gets_fresh_workers(kept, monkeypatch, what):
    monkeypatch.setattr(Told, "size", 1)
    monkeypatch.setitem(globals(), "FACTOR", 1)
    monkeypatch.setitem(globals(), "LIST", [0])
    data = Told()
    loader = DataLoader(ConcatDataset([data]), 2, num_workers=1, multiprocessing_context="fork")
    keeper = kept(loader)
    run_kept(keeper, loader)
    _change(data, what)
    assert [b.tolist() for b in loader] == [[1, 1], [1, 1]]
    assert not keeper.reusing and keeper.problem is None
    assert [b.tolist() for b in loader] == [[1, 1], [1, 1]] and keeper.reusing


def test_a_data_set_that_is_changed_before_every_epoch_is_told_so(kept):
    data = Noisy(8)
    loader = DataLoader(data, 4, num_workers=1)
    keeper = kept(loader)
    keeper.request(True)
    for epoch in range(4):
        data.offset = 100 * epoch
        assert firsts(loader) == [100 * epoch + i for i in range(8)]
    assert "changed between" in keeper.problem and not keeper.reusing


def test_settings_of_the_loader_that_were_changed_hold_from_the_next_pass_on(kept):
    loader = DataLoader(Noisy(), 4, num_workers=2)
    keeper = kept(loader)
    run_kept(keeper, loader)
    loader.num_workers = 3
    iterator = iter(loader)
    assert len(iterator._workers) == 3 and not keeper.reusing
    assert firsts(iterator) == list(range(24))
    loader.prefetch_factor = 5
    iterator = iter(loader)
    assert keeper.reusing and iterator._prefetch_factor == 5 and iterator._tasks_outstanding == 6
    assert firsts(iterator) == list(range(24))
    loader.collate_fn = len
    assert list(loader) == [4] * 6 and not keeper.reusing


class Endless(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(4))


class WithEpoch(Squares):
    epoch = 0

    def __init__(self) -> None:
        super().__init__(4)
        self.epoch = 0


class WithSetter(Squares):
    def set_epoch(self, epoch: int) -> None:
        pass


class Own(DataLoader):
    def __iter__(self) -> Any:
        return super().__iter__()


class Handle(Squares):
    def __init__(self) -> None:
        super().__init__(4)
        self.file = open(os.devnull)  # noqa: SIM115


class Slow(Squares):
    def __getstate__(self) -> Any:
        time.sleep(0.4)
        return self.__dict__


def _refused(make: Any, why: str) -> None:
    loader = make()
    keeper = Keeper(loader)
    assert why in keeper.prospect().refusal
    with pytest.raises(NotPossible, match=why):
        keeper.request(True)
    assert keeper.wanted is False


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: DataLoader(Endless(), num_workers=1), "iterable"),
        (lambda: DataLoader(WithEpoch(), num_workers=1), "told the epoch"),
        (lambda: DataLoader(Subset(WithSetter(8), range(4)), num_workers=1), "told the epoch"),
        (lambda: Own(Squares(4), num_workers=1), "iterators of its own"),
        (lambda: DataLoader(Handle(), num_workers=1), "cannot be shown"),
        (lambda: DataLoader(Slow(4), num_workers=1), "takes more than"),
    ],
)
def test_where_it_could_go_wrong_it_is_refused(make, why):
    _refused(make, why)


def test_worker_init_fn_and_own_generators_are_another_stream(kept):
    plain = DataLoader(Noisy(), num_workers=1)
    assert Keeper(plain).prospect() == keep.Prospect("", "exact", "")
    initialised = DataLoader(Items(8, set(), set(), 0, True, False), 2, num_workers=1, worker_init_fn=init)
    prospect = Keeper(initialised).prospect()
    assert prospect.exactness == "distribution" and "worker_init_fn" in prospect.reason
    keeper = kept(initialised)
    run_kept(keeper, initialised)
    assert firsts(initialised) == list(range(8)) and keeper.reusing
    for generator in (random.Random(1), numpy.random.default_rng(1), torch.Generator()):
        data = Squares(4)
        data.transform = types.SimpleNamespace(rng=generator)
        loader = DataLoader(data, num_workers=1)
        prospect = Keeper(loader).prospect()
        assert prospect.exactness == "distribution" and "generator" in prospect.reason


def test_tensors_of_a_data_set_are_proved_in_time_and_draws_nothing():
    loader = DataLoader(TensorDataset(torch.zeros(1000, 32), torch.arange(1000)), num_workers=1)
    before = states()
    keeper = Keeper(loader)
    begin = time.perf_counter()
    assert keeper.prospect().refusal == ""
    assert time.perf_counter() - begin < 1.0 and states() == before
