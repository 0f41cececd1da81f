"""Batches made the short way in a running iterator: same batches, same exceptions, taken off at any time."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from typing import Any

import batches
import numpy
import pytest
import torch
from shapes import until_effective
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from gpuutil.hooks.dataloader import batch_fetch, rows, stacking
from gpuutil.hooks.dataloader.batch_fetch import (
    ATTRIBUTE,
    BY_ROWS,
    BY_STACK,
    OFF,
    BatchFetch,
    BatchFetcher,
)
from gpuutil.hooks.dataloader.fetch_cost import CostWatch
from gpuutil.hooks.dataloader.live import LiveLoader
from gpuutil.hooks.dataloader.refusal import NotPossible

LENGTH, BATCH = 100, 8


def _tensors() -> TensorDataset:
    return TensorDataset(torch.arange(LENGTH * 3.0).reshape(LENGTH, 3), torch.arange(LENGTH))


class Arrays(Dataset):
    """Small arrays and a number; counts its reads, and draws random numbers like an augmentation."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.reads.append(index)
        noise = random.random() + numpy.random.rand() + float(torch.rand(()))
        return {"x": numpy.full((4, 2), index + noise, "float32"), "y": index, "name": str(index)}


def _states() -> tuple[Any, ...]:
    return torch.get_rng_state().tolist(), random.getstate(), numpy.random.get_state()[1].tolist()


def _seed(seed: int = 3) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def _on(loader: DataLoader, handle: BatchFetch) -> Any:
    iterator = iter(loader)
    handle.bind(iterator)
    return iterator


def _timed(dataset: Any, **settings: Any) -> BatchFetch:
    """A handle that has seen a pass, so that it knows what the samples are."""
    handle = BatchFetch()
    list(_on(DataLoader(dataset, **{"batch_size": BATCH, **settings}), handle))
    assert not handle.watching
    return handle


def _is_stock(iterator: Any) -> bool:
    fetcher = iterator._dataset_fetcher
    return type(fetcher) is _MapDatasetFetcher and ATTRIBUTE not in vars(fetcher)


@pytest.mark.parametrize(("make", "value"), [
    (_tensors, BY_ROWS),
    (lambda: Subset(_tensors(), list(range(90, 10, -1))), BY_ROWS),
    (Arrays, BY_STACK),
])  # fmt: skip
def test_a_whole_training_sees_the_same_batches_and_random_numbers(make, value):
    _seed()
    expected = [batch for _ in range(3) for batch in DataLoader(make(), BATCH, shuffle=True)]
    after = _states()
    dataset = make()
    loader, handle = DataLoader(dataset, BATCH, shuffle=True), BatchFetch()
    _seed()
    got: list[Any] = []
    for epoch in range(3):
        iterator = _on(loader, handle)
        for batch in iterator:
            got.append(batch)
            if epoch == 0 and len(got) == CostWatch.BATCHES + 1:
                handle.request(value)
        assert type(iterator._dataset_fetcher) is BatchFetcher
    assert handle.settled
    assert _states() == after
    assert len(got) == len(expected)
    for one, other in zip(expected, got, strict=True):
        batches.assert_same(one, other)
    if isinstance(dataset, Arrays):
        assert len(dataset.reads) == 3 * LENGTH


def test_the_short_way_is_really_taken(monkeypatch):
    reads, original = [], TensorDataset.__getitem__
    monkeypatch.setattr(TensorDataset, "__getitem__", lambda d, i: reads.append(i) or original(d, i))
    monkeypatch.setattr(rows, "_ROW", TensorDataset.__getitem__)
    handle = BatchFetch()
    iterator = _on(DataLoader(_tensors(), BATCH), handle)
    handle.request(BY_ROWS)
    next(iterator), next(iterator)
    assert handle.settled and len(reads) == 2 * BATCH  # compared with torch's own
    assert sum(1 for _ in iterator) == 11
    assert len(reads) == 2 * BATCH


class Awkward(torch.utils.data.Sampler):
    """Batches of every kind, some of which nobody can fetch."""

    ALL: tuple[Any, ...] = (
        [0, 1], [2, 3], [-1, 4], [5, LENGTH], [6, -LENGTH - 1], [], [True, 2], [numpy.int64(7), 8],
        [torch.tensor(9), 10], (11, 12), torch.tensor([13, 14]), numpy.array([15, 16]), ["17"], [18.5],
        [None], [1 << 70], 19, [slice(0, 2)], [[1, 2]], [20, 21], range(22, 24), [24],
    )  # fmt: skip

    def __iter__(self) -> Any:
        return iter(self.ALL)


@pytest.mark.parametrize("make", [
    _tensors,
    lambda: Subset(_tensors(), list(range(50, 0, -1))),
    lambda: Subset(_tensors(), torch.arange(40)),
    lambda: Subset(_tensors(), numpy.arange(40)),
    lambda: Subset(Subset(_tensors(), [5, LENGTH, -1] * 20), list(range(50))),
])  # fmt: skip
def test_bad_and_odd_indices_give_torchs_batch_or_torchs_exception(make):
    def play(handle: BatchFetch | None) -> list[Any]:
        iterator = iter(DataLoader(make(), batch_sampler=Awkward()))
        if handle is not None:
            handle.bind(iterator)
            handle.request(BY_ROWS)
            handle._checks_left = 0
        return [batches.outcome(next, iterator) for _ in range(len(Awkward.ALL) + 1)]

    for expected, got in zip(play(None), play(BatchFetch()), strict=True):
        batches.assert_same_outcome(expected, got)


class Broken(Arrays):
    def __getitem__(self, index: int) -> Any:
        if index == 60:
            raise KeyError("sixty")
        sample = super().__getitem__(index)
        if index == 70:
            sample["x"] = sample["x"][:1]
        if index == 90:
            del sample["y"]
        return sample


def test_exceptions_of_items_and_of_the_collate_are_torchs_own():
    def play(handle: BatchFetch | None) -> list[Any]:
        _seed()
        iterator = iter(DataLoader(Broken(), BATCH))
        if handle is not None:
            handle.bind(iterator)
            handle.request(BY_STACK)
        return [batches.outcome(next, iterator) for _ in range(14)]

    handle = _timed(Arrays())
    expected, got = play(None), play(handle)
    assert handle.settled
    assert sum(1 for one in expected if isinstance(one, tuple)) == 4
    for one, other in zip(expected, got, strict=True):
        batches.assert_same_outcome(one, other)


def test_undone_in_the_middle_of_an_epoch_and_done_again():
    handle = BatchFetch()
    iterator = _on(DataLoader(_tensors(), BATCH), handle)
    got = []
    for index, batch in enumerate(iterator):
        got.append(batch)
        handle.request((OFF, BY_ROWS)[index % 3 != 2])
        if handle.value == OFF:
            assert _is_stock(iterator)
    for expected, batch in zip(DataLoader(_tensors(), BATCH), got, strict=True):
        batches.assert_same(expected, batch)


def test_close_leaves_nothing_on_any_iterator():
    handle = BatchFetch()
    loader = DataLoader(_tensors(), BATCH)
    first, second = _on(loader, handle), _on(loader, handle)
    handle.request(BY_ROWS)
    assert not _is_stock(first) and not _is_stock(second)
    pairs = list(zip(first, second, strict=True))[:5]
    for one, other in pairs:
        batches.assert_same(one, other)
    handle.close()
    assert _is_stock(first) and _is_stock(second)
    handle.close()
    with pytest.raises(NotPossible, match="closed"):
        handle.request(BY_ROWS)
    third = _on(loader, handle)
    assert _is_stock(third)


def test_a_batch_that_comes_out_otherwise_ends_it_for_good(monkeypatch):
    right = rows.fetch
    monkeypatch.setattr(rows, "fetch", lambda *a: [t.double() for t in right(*a)])
    handle = BatchFetch()
    iterator = _on(DataLoader(_tensors(), BATCH), handle)
    handle.request(BY_ROWS)
    for expected, batch in zip(DataLoader(_tensors(), BATCH), iterator, strict=True):
        batches.assert_same(expected, batch)
    assert not handle.settled
    assert handle.failure == "a batch came out otherwise: dtype torch.float64 instead of torch.float32"
    handle.request(OFF)
    assert _is_stock(iterator)
    with pytest.raises(NotPossible, match="came out otherwise"):
        handle.request(BY_ROWS)


def test_batches_that_are_never_usual_end_the_comparison_with_the_reason():
    handle = BatchFetch()
    sampler = [[torch.tensor(i), torch.tensor(i + 1)] for i in range(20)]
    iterator = _on(DataLoader(_tensors(), batch_sampler=sampler), handle)
    handle.request(BY_ROWS)
    list(iterator)
    assert "Python numbers" in handle.failure


def test_an_error_of_ours_in_every_batch_costs_nobody_a_batch(monkeypatch):
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    handle, stacked = BatchFetch(), _timed(Arrays())
    iterator = _on(DataLoader(_tensors(), BATCH), handle)
    handle.request(BY_ROWS)
    next(iterator), next(iterator)
    monkeypatch.setattr(rows, "fetch", broken)
    monkeypatch.setattr(stacking, "collate", broken)
    assert sum(len(x) for x, _ in iterator) == LENGTH - 2 * BATCH
    iterator = _on(DataLoader(Arrays(), BATCH), stacked)
    stacked.request(BY_STACK)
    assert sum(len(batch["y"]) for batch in iterator) == LENGTH
    assert "ZeroDivisionError" in stacked.failure


def test_a_data_set_that_changes_meanwhile_is_seen_as_it_is():
    dataset = _tensors()
    handle = BatchFetch()
    iterator = _on(DataLoader(dataset, BATCH), handle)
    handle.request(BY_ROWS)
    for _ in range(4):
        next(iterator)
    dataset.tensors[0].requires_grad_()
    x, _ = next(iterator)
    assert x.requires_grad and x.grad_fn is not None
    dataset.tensors = (torch.ones(LENGTH, 1),)
    batches.assert_same([torch.ones(BATCH, 1)], next(iterator))


@pytest.mark.parametrize(("settings", "reason"), [
    ({"batch_size": None}, "no batches"),
    ({"collate_fn": lambda samples: default_collate(samples)}, "collate_fn"),
    ({"num_workers": 1}, "worker processes"),
])  # fmt: skip
def test_loaders_that_it_does_not_fit_are_refused_with_a_reason(settings, reason):
    handle = BatchFetch()
    loader = DataLoader(_tensors(), **{"batch_size": BATCH, **settings})
    iterator = _on(loader, handle)
    assert handle.offered is None and reason in handle.refusal
    with pytest.raises(NotPossible, match=reason):
        handle.request(BY_ROWS)
    assert len(list(iterator)) == len(loader)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(20))


class Photos(Dataset):
    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), index)


def test_data_sets_that_it_does_not_fit_are_refused_with_a_reason():
    assert "iterable" in _timed(Stream(), batch_size=1).refusal
    assert _timed(Photos()).refusal == (
        "the data set is a Photos, not a TensorDataset, and its samples hold no small arrays of one shape"
    )
    assert BatchFetch().offered is None
    with pytest.raises(ValueError, match="0, 1 or 2"):
        BatchFetch().request(7)


def test_somebody_elses_fetcher_is_left_alone():
    class Theirs(_MapDatasetFetcher):
        pass

    handle = BatchFetch()
    iterator = iter(DataLoader(_tensors(), BATCH))
    iterator._dataset_fetcher.__class__ = Theirs
    handle.bind(iterator)
    assert "somebody else" in handle.refusal
    assert type(iterator._dataset_fetcher) is Theirs


def test_another_collate_in_the_next_epoch_is_obeyed():
    handle = BatchFetch()
    loader = DataLoader(_tensors(), BATCH)
    iterator = _on(loader, handle)
    handle.request(BY_ROWS)
    list(iterator)
    loader.collate_fn = lambda samples: len(samples)
    assert list(_on(loader, handle)) == [BATCH] * 12 + [4]
    loader.collate_fn = default_collate
    for expected, got in zip(DataLoader(_tensors(), BATCH), _on(loader, handle), strict=True):
        batches.assert_same(expected, got)


def test_a_dropped_iterator_is_freed_at_once():
    handle = BatchFetch()
    gc.collect()
    gc.disable()
    try:
        iterator = _on(DataLoader(_tensors(), BATCH), handle)
        handle.request(BY_ROWS)
        next(iterator)
        dead = weakref.ref(iterator), weakref.ref(iterator._dataset_fetcher)
        del iterator
        assert [ref() for ref in dead] == [None, None]
    finally:
        gc.enable()


def test_early_batches_show_what_rows_and_collate_cost_and_then_torch_is_alone_again():
    handle = BatchFetch()
    iterator = _on(DataLoader(_tensors(), BATCH), handle)
    for _ in range(CostWatch.BATCHES):
        assert handle.watching
        next(iterator)
    assert not handle.watching
    cost = handle.cost
    assert cost.row_seconds > 0 and cost.collate_seconds > 0 and cost.batch_seconds > 0
    assert cost.stack_seconds is None
    next(iterator)
    assert _is_stock(iterator)
    assert handle.offered == BY_ROWS


def test_costs_of_arrays_of_tensors_and_of_somebodys_own_collate():
    arrays = _timed(Arrays())
    assert arrays.cost.stack_seconds > 0 and arrays.cost.batch_seconds is None
    assert arrays.offered == BY_STACK
    photos = _timed(Photos())
    assert photos.cost.row_seconds > 0 and photos.cost.stack_seconds is photos.cost.batch_seconds is None
    own = _timed(_tensors(), collate_fn=lambda samples: len(samples))
    assert own.cost.collate_seconds is not None
    assert own.cost.stack_seconds is own.cost.batch_seconds is None


def test_it_goes_on_while_workers_come_and_go(opened):
    loader = DataLoader(_tensors(), 1)
    live: LiveLoader = opened(loader)
    handle = BatchFetch()
    got: list[Any] = []
    for epoch in range(3):
        iterator = iter(loader)
        live.bind(iterator)
        handle.bind(iterator)
        if epoch == 0:
            handle.request(BY_ROWS)
        live.request(workers=2)
        got += until_effective(live, iterator)
        live.request(workers=0)
        got += until_effective(live, iterator)
        assert type(iterator._dataset_fetcher) is BatchFetcher
        got += iterator
    expected = [batch for _ in range(3) for batch in DataLoader(_tensors(), 1)]
    assert len(got) == len(expected)
    for one, other in zip(expected, got, strict=True):
        assert [t.tolist() for t in one] == [t.tolist() for t in other]
    assert handle.settled


def test_two_threads_with_an_iterator_each_get_their_own_batches():
    handle = BatchFetch()
    loader = DataLoader(_tensors(), 4)
    iterators = [_on(loader, handle) for _ in range(2)]
    results: list[list[int]] = [[], []]

    def consume(which: int) -> None:
        for _, y in iterators[which]:
            results[which] += y.tolist()

    threads = [threading.Thread(target=consume, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for i in range(200):
        handle.request((OFF, BY_ROWS)[i % 2])
    for thread in threads:
        thread.join()
    assert results == [list(range(LENGTH))] * 2
    assert batch_fetch.BatchFetcher.__mro__[1] is _MapDatasetFetcher
