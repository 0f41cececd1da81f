"""Where the time of a fetch in this process goes: a few early batches of a loader, timed apart.

A batch is fetched once, by torch's code, whatever is measured beside it: no item is read twice, and
what is measured beside it (one indexing, a stack-first collate) touches plain tensors and arrays
only.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data import default_collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from . import rows, stacking


@dataclasses.dataclass(frozen=True)
class FetchCost:
    """Seconds a batch, the shortest of the batches looked at; None: not measured.

    Attributes:
        row_seconds: reading the items.
        collate_seconds: making one batch of them.
        batch_seconds: one indexing for all, where the data set allows it; instead of both above.
        stack_seconds: a stack-first collate, where the samples are arrays of one shape.
    """

    row_seconds: float | None = None
    collate_seconds: float | None = None
    batch_seconds: float | None = None
    stack_seconds: float | None = None


class CostWatch:
    """Times the first batches of a loader.

    The first is only for warming up. Of the others every second one is fetched by torch alone, and
    before the rest the shortcut is timed: each is timed where it finds the rows cold.
    """

    BATCHES = 6

    def __init__(self) -> None:
        self.cost = FetchCost()
        self._seen = 0

    @property
    def wanting(self) -> bool:
        """Whether more batches ought to be timed."""
        return self._seen < self.BATCHES

    def fetch(self, fetcher: Any, indices: Any) -> Any:
        """What torch's fetch gives, raises and draws."""
        turn, self._seen = self._seen, self._seen + 1
        beside = turn % 2 == 1
        stock = fetcher.collate_fn is default_collate
        by_rows = stock and rows.problem(fetcher.dataset) is None
        if beside and by_rows:
            self._note("batch_seconds", _timed(rows.fetch, fetcher.dataset, indices))
        collate = _TimedCollate(fetcher.collate_fn, stack=beside and stock and not by_rows)
        begin = time.monotonic_ns()
        batch = _MapDatasetFetcher.fetch(with_collate(fetcher, collate), indices)
        whole = (time.monotonic_ns() - begin) / 1e9
        if beside:
            self._note("stack_seconds", collate.stack_seconds)
        elif turn > 0:
            self._note("row_seconds", max(0.0, whole - collate.seconds))
            self._note("collate_seconds", collate.seconds)
        return batch

    def _note(self, name: str, seconds: float | None) -> None:
        if seconds is None:
            return
        known = getattr(self.cost, name)
        shortest = seconds if known is None else min(known, seconds)
        self.cost = dataclasses.replace(self.cost, **{name: shortest})


class _TimedCollate:
    def __init__(self, collate: Callable[[Any], Any], stack: bool) -> None:
        self._collate, self._stack = collate, stack
        self.seconds = 0.0
        self.stack_seconds: float | None = None

    def __call__(self, samples: Any) -> Any:
        if self._stack:
            self.stack_seconds = _timed(stacking.collate, samples)
        begin = time.monotonic_ns()
        batch = self._collate(samples)
        self.seconds = (time.monotonic_ns() - begin) / 1e9
        return batch


def with_collate(fetcher: Any, collate: Callable[[Any], Any]) -> Any:
    """torch's own fetcher of the same data set with another collate; `fetcher` is not touched."""
    other = object.__new__(_MapDatasetFetcher)
    other.__dict__.update(fetcher.__dict__, collate_fn=collate)
    return other


def _timed(function: Callable[..., Any], *arguments: Any) -> float | None:
    begin = time.monotonic_ns()
    try:
        function(*arguments)
    except Exception:
        return None
    return (time.monotonic_ns() - begin) / 1e9
