"""Live changes with real processes: one behaviour a test."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
import torch
from shapes import Backwards, Squares, WithPid, bound, collate, firsts, until_effective
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
)
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

from gpuutil.hooks.dataloader import payload
from gpuutil.hooks.dataloader.live import NotPossible


def test_zero_to_two_to_zero_keeps_order_object_and_loader(opened):
    loader = DataLoader(Squares(), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    same = iterator
    got = [next(iterator) for _ in range(3)]
    live.request(workers=2, prefetch=3)
    got += until_effective(live, iterator)
    assert isinstance(iterator, _SingleProcessDataLoaderIter) and loader.num_workers == 0
    assert len(live.state.worker_pids) == 2 and live.state.prefetch == 3
    live.request(workers=0)
    got += until_effective(live, iterator)
    assert live.state.worker_pids == ()
    got += list(iterator)
    assert firsts(got) == list(range(200)) and same is iterator
    assert type(iterator) is _SingleProcessDataLoaderIter and "_gpuutil_engine" not in vars(
        iterator
    )


def test_stock_workers_are_joined_and_parked(opened):
    loader = DataLoader(WithPid(400), 2, num_workers=2)
    live = opened(loader)
    iterator = bound(live, loader)
    got = [next(iterator) for _ in range(3)]
    live.request(workers=4)
    got += until_effective(live, iterator)
    assert len({int(b[0, 1]) for b in [next(iterator) for _ in range(20)]}) == 4
    live.request(workers=1)
    until_effective(live, iterator)
    for _ in range(8):
        next(iterator)
    assert len({int(b[0, 1]) for b in [next(iterator) for _ in range(10)]}) == 1
    live.undo_all()
    until_effective(live, iterator)
    for _ in range(8):
        next(iterator)
    assert type(iterator) is _MultiProcessingDataLoaderIter
    rest = firsts(iterator)
    assert rest == list(range(rest[0], 400))


def test_the_pool_serves_the_next_epoch_if_the_data_set_is_the_same(opened):
    loader = DataLoader(WithPid(60), 2)
    live = opened(loader)
    live.request(workers=2)
    iterator = bound(live, loader)
    until_effective(live, iterator)
    pids = live.state.worker_pids
    list(iterator)
    iterator = bound(live, loader)
    first = next(iterator)
    assert live.state.worker_pids == pids and int(first[0, 1]) in pids
    assert firsts([first, *iterator]) == list(range(60))


@pytest.mark.parametrize("how", ["attribute", "set_epoch"])
def test_workers_are_fresh_when_the_data_set_may_have_changed(opened, how):
    class Told(Squares):
        offset = 0

        def __getitem__(self, index: int) -> torch.Tensor:
            return super().__getitem__(index) + self.__dict__.get("offset", 0)

    class ToldEpoch(Told):
        def set_epoch(self, epoch: int) -> None:
            self.offset = epoch

    data = Told(40) if how == "attribute" else ToldEpoch(40)
    loader = DataLoader(data, 2)
    live = opened(loader)
    live.request(workers=2)
    for epoch in range(3):
        data.__dict__["offset"] = 1000 * epoch
        iterator = bound(live, loader)
        got = firsts(iterator)
        assert got == [i + 1000 * epoch for i in range(40)]


def test_of_two_iterators_one_has_the_workers_and_both_are_exact(opened):
    loader = DataLoader(Squares(80), 2)
    live = opened(loader)
    one = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, one)
    two = bound(live, loader)
    other = [next(two) for _ in range(5)]
    for batch in one:
        got.append(batch)
        other.append(next(two, None))
    other = [b for b in other if b is not None] + list(two)
    assert firsts(got) == firsts(other) == list(range(80))


def test_the_trainers_generators_are_not_touched(opened):
    torch.manual_seed(1)
    random.seed(1)
    loader = DataLoader(Squares(60), 2, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    before = torch.get_rng_state().tolist(), random.getstate()
    live = opened(loader)
    live.bind(iterator)
    live.request(workers=2)
    list(iterator)
    assert (torch.get_rng_state().tolist(), random.getstate()) == before


def test_random_draws_of_items_are_noticed(opened):
    class Noisy(Squares):
        def __getitem__(self, index: int) -> torch.Tensor:
            return super().__getitem__(index) + torch.rand(2)

    for data, draws in ((Squares(40), False), (Noisy(40), True)):
        loader = DataLoader(data, 2, shuffle=True)
        live = opened(loader)
        assert live.state.draws_random is None
        list(bound(live, loader))
        assert live.state.draws_random is draws


def test_a_sampler_that_draws_while_it_is_read_is_never_read_ahead(opened):
    class Drawing(Sampler):
        def __len__(self) -> int:
            return 60

        def __iter__(self) -> Any:
            for _ in range(60):
                yield int(torch.randint(200, ()).item())

    def run(changes: bool) -> Any:
        torch.manual_seed(3)
        loader = DataLoader(Squares(), 2, sampler=Drawing())
        live = opened(loader)
        iterator = bound(live, loader) if changes else iter(loader)
        if changes:
            live.request(workers=2)
        out = []
        for batch in iterator:
            out.append((batch.tolist(), torch.rand(()).item()))
            time.sleep(0.01 if changes else 0)
        if changes:
            assert "sampler draws" in live.state.fallback_reason
            iterator = bound(live, loader)
            with pytest.raises(NotPossible, match="sampler draws"):
                live.request(workers=2)
        return out

    assert run(True) == run(False)


def test_what_cannot_be_changed_is_refused_with_a_reason(opened):
    class Endless(IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(10))

    def reason(loader: DataLoader) -> str | None:
        return opened(loader).supported(iter(loader))

    assert "iterable" in reason(DataLoader(Endless()))
    shared = torch.Generator()
    drawing = RandomSampler(Squares(), replacement=True, generator=shared)
    assert "generator" in reason(DataLoader(Squares(), 2, sampler=drawing))

    class Own(Backwards):
        def __init__(self) -> None:
            super().__init__(10)
            self.generator = random.Random(1)

    assert "random generator" in reason(
        DataLoader(Squares(), batch_sampler=BatchSampler(Own(), 2, False))
    )
    assert reason(DataLoader(Squares(), 2)) is None

    class Mine(_SingleProcessDataLoaderIter):
        """Somebody's subclass."""

    assert "not an iterator of torch's own" in opened(DataLoader(Squares())).supported(
        Mine(DataLoader(Squares()))
    )
    live = opened(DataLoader(Squares(), num_workers=1))
    with pytest.raises(NotPossible, match="at least one stays"):
        live.request(workers=0)
    with pytest.raises(ValueError, match="prefetch"):
        live.request(prefetch=0)


def test_persistent_loaders_keep_both_kinds_of_workers(opened):
    loader = DataLoader(WithPid(60), 2, num_workers=1, persistent_workers=True, collate_fn=None)
    live = opened(loader)
    live.request(workers=3)
    iterator = bound(live, loader)
    got = until_effective(live, iterator)
    pids = live.state.worker_pids
    assert firsts(got + list(iterator)) == list(range(60))
    for stop in (5, None):
        iterator = bound(live, loader)
        got = [b for _, b in zip(range(stop or 99), iterator, strict=False)]
        assert live.state.worker_pids == pids or stop is None
        assert firsts(got) == list(range(min(60, 2 * (stop or 99))))
    del iterator
    loader._iterator = None


def test_the_collate_function_of_the_user_makes_the_batches(opened):
    loader = DataLoader(Squares(40), 2, collate_fn=collate)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=1)
    assert [i for batch in iterator for i in batch["x"][::2]] == list(range(40))


@pytest.mark.parametrize("kind", ["tensor", "array", "slow to pickle"])
def test_a_large_data_set_is_never_pickled_for_longer_than_the_budget(opened, kind):
    numpy = pytest.importorskip("numpy")
    data = Squares(60)
    data.held = {
        "tensor": lambda: torch.zeros(50_000_000, dtype=torch.uint8),
        "array": lambda: numpy.zeros(50_000_000, dtype=numpy.uint8),
        "slow to pickle": lambda: [(f"a/path/{i}.jpg", i) for i in range(1_000_000)],
    }[kind]()
    loader = DataLoader(data, 2)
    begin = time.thread_time()
    assert payload.fingerprint(payload.Parts(iter(loader), None), 0.02, 1 << 30) is None
    assert time.thread_time() - begin < 0.1
    live = opened(loader)
    live.request(workers=1)
    for _ in range(2):
        assert firsts(bound(live, loader)) == list(range(60))
