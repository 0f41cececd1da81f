"""Batches of a loader without workers by one indexing, or by one stack a field: the same batches,
bit for bit.

The fetcher of the running iterator stays the object that it is and only its class is swapped for a
small subclass, as `engine.py` does it with iterators: no closure, no cycle, and torch's own fetch
is one assignment away. Whatever is not clearly covered is fetched by torch's code, batch by batch,
so every exception is torch's own. The first batches are made both ways and compared.
"""

from __future__ import annotations

import weakref
from typing import Any

from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, default_collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _DatasetKind, _SingleProcessDataLoaderIter

from . import rows, sameness, stacking
from .fetch_cost import CostWatch, FetchCost, with_collate
from .refusal import NotPossible
from .single import SingleLive
from .unusual import Unusual

ATTRIBUTE = "_gpuutil_batch_fetch"
OFF, BY_ROWS, BY_STACK = 0, 1, 2
"""Values of the remedy: torch's own way; one indexing a batch; one stack a field."""
_CHECKS = 2
_PATIENCE = 8
"""Batches made by torch alone, because they were unusual, before the comparison is given up."""


class BatchFetcher(_MapDatasetFetcher):
    """torch's fetcher while gpuutil looks at it or serves it."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        held = self.__dict__.get(ATTRIBUTE)
        if held is None:  # taken off by another thread just now
            return _MapDatasetFetcher.fetch(self, possibly_batched_index)
        owner, plain = held
        return owner.fetch(self, possibly_batched_index, plain)


class BatchFetch:
    """What is wanted of one loader's fetches, over all its iterators, which it holds weakly.

    `bind` and `request` are called on the thread that consumes the loader, between two `next()`
    calls.
    """

    def __init__(self) -> None:
        self._fetchers: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._costs = CostWatch()
        self._wanted = OFF
        self._checks_left = _CHECKS
        self._patience = _PATIENCE
        self._problem: str | None = None  # a batch came out otherwise: never again
        self._refusal: str | None = "no pass over the loader has begun"
        self._rows_problem: str | None = None
        self._collate_problem: str | None = None
        self._closed = False

    # ---- public

    @property
    def value(self) -> int:
        """What is asked for."""
        return self._wanted

    @property
    def offered(self) -> int | None:
        """The value that fits this loader; None where none does, or where that is not known yet."""
        if self._closed or self.refusal is not None:
            return None
        if self._rows_problem is None:
            return BY_ROWS
        return BY_STACK if self.cost.stack_seconds is not None else None

    @property
    def refusal(self) -> str | None:
        """Why nothing can be done here; None if it can, or if that is not known yet."""
        known = self._problem or self._refusal or self._collate_problem
        if known is not None:
            return known
        if self._rows_problem is None or self._costs.wanting or self.cost.stack_seconds is not None:
            return None
        return f"{self._rows_problem}, and its samples hold no small arrays of one shape"

    @property
    def cost(self) -> FetchCost:
        """Where the time of a fetch goes, by the batches seen so far."""
        return self._costs.cost

    @property
    def watching(self) -> bool:
        """Whether batches are still being timed."""
        return not self._closed and self._refusal is None and self._costs.wanting

    @property
    def settled(self) -> bool:
        """Whether what is asked for is what runs: the first batches were compared."""
        return self._wanted == OFF or (self._checks_left <= 0 and self._problem is None)

    @property
    def failure(self) -> str | None:
        """Why what is asked for will not come about."""
        return self._problem if self._wanted != OFF else None

    def bind(self, iterator: Any) -> None:
        """A new iterator: looks at it and puts on what is in force. Never raises."""
        try:
            self._refusal = _why_not(iterator)
            if self._refusal is not None or self._closed:
                return
            fetcher = iterator._dataset_fetcher
            self._rows_problem = rows.problem(fetcher.dataset)
            own = fetcher.collate_fn is not default_collate
            self._collate_problem = "collate_fn is the script's own" if own else None
            self._fetchers[fetcher] = _plain_indices(iterator._index_sampler)
            if self._wanted != OFF or self._costs.wanting:
                self._put_on(fetcher)
        except Exception as error:
            self._refusal = f"an error of gpuutil's: {error!r}"

    def request(self, value: int) -> None:
        """Asks for OFF, BY_ROWS or BY_STACK, from the next fetch on.

        Raises:
            ValueError: another value.
            NotPossible: refused, with the reason; nothing was touched.
        """
        if value not in (OFF, BY_ROWS, BY_STACK):
            raise ValueError(f"the way to fetch batches must be 0, 1 or 2, not {value!r}")
        if value != OFF:
            why = "the handle of this loader is closed" if self._closed else self.refusal
            why = why or (self._rows_problem if value == BY_ROWS else None)
            if why is not None:
                raise NotPossible(why)
        self._wanted = value
        for fetcher in list(self._fetchers):
            if value != OFF:
                self._put_on(fetcher)
            else:
                _take_off(fetcher)

    def close(self) -> None:
        """Every iterator fetches as torch made it to. Any thread; may be called again."""
        self._closed = True
        self._wanted = OFF
        for fetcher in list(self._fetchers):
            _take_off(fetcher)

    # ---- called by the fetcher

    def fetch(self, fetcher: Any, indices: Any, plain: bool) -> Any:
        """The batch for the user. Every exception that leaves it is the user's own, or torch's.

        Args:
            plain: the sampler is known to give Python numbers only.
        """
        if self._wanted == OFF or self._problem is not None:
            if self.watching:
                return self._costs.fetch(fetcher, indices)
            _take_off(fetcher)
        elif fetcher.collate_fn is default_collate:
            if self._checks_left > 0:
                return self._compared(fetcher, indices)
            if self._wanted == BY_STACK:
                return _MapDatasetFetcher.fetch(with_collate(fetcher, _stacked), indices)
            try:
                return rows.fetch(fetcher.dataset, indices, plain)
            except Exception:  # torch's code does it, or raises what it raises
                pass
        return _MapDatasetFetcher.fetch(fetcher, indices)

    def _compared(self, fetcher: Any, indices: Any) -> Any:
        """torch's own batch, compared with ours. Items are read once."""
        compared = _Compared()
        if self._wanted == BY_STACK:
            batch = _MapDatasetFetcher.fetch(with_collate(fetcher, compared.collate), indices)
        else:
            batch = _MapDatasetFetcher.fetch(fetcher, indices)
            compared.look(batch, rows.fetch, fetcher.dataset, indices)
        if compared.unusual is not None:
            self._patience -= 1
            if self._patience <= 0:
                self._problem = compared.unusual
        elif compared.difference is not None:
            self._problem = f"a batch came out otherwise: {compared.difference}"
        else:
            self._checks_left -= 1
        return batch

    def _put_on(self, fetcher: Any) -> None:
        if type(fetcher) is _MapDatasetFetcher:
            fetcher.__dict__[ATTRIBUTE] = self, self._fetchers[fetcher]
            fetcher.__class__ = BatchFetcher


class _Compared:
    """One batch made both ways."""

    def __init__(self) -> None:
        self.unusual: str | None = None
        self.difference: str | None = None

    def collate(self, samples: Any) -> Any:
        batch = default_collate(samples)
        self.look(batch, stacking.collate, samples)
        return batch

    def look(self, expected: Any, make: Any, *arguments: Any) -> None:
        try:
            self.difference = sameness.difference(expected, make(*arguments))
        except Unusual as reason:
            self.unusual = str(reason)
        except Exception as error:  # indices counted from the end, say, which torch could read
            self.unusual = f"{type(error).__name__}: {error}"


def _stacked(samples: Any) -> Any:
    try:
        return stacking.collate(samples)
    except Exception:  # torch's code does it, or raises what it raises
        pass
    return default_collate(samples)


def _take_off(fetcher: Any) -> None:
    if type(fetcher) is BatchFetcher:
        fetcher.__class__ = _MapDatasetFetcher
    fetcher.__dict__.pop(ATTRIBUTE, None)


def _plain_indices(index_sampler: Any) -> bool:
    return type(index_sampler) is BatchSampler and type(index_sampler.sampler) in (
        RandomSampler,
        SequentialSampler,
    )


def _why_not(iterator: Any) -> str | None:
    if type(iterator) not in (_SingleProcessDataLoaderIter, SingleLive):
        if getattr(iterator, "_num_workers", 0):
            return "batches are made in worker processes"
        return "not an iterator of torch's own DataLoader"
    if iterator._dataset_kind != _DatasetKind.Map:
        return "the data set is iterable: it has no rows to index"
    fetcher = iterator._dataset_fetcher
    if type(fetcher) not in (_MapDatasetFetcher, BatchFetcher):
        return f"the fetcher is somebody else's: {type(fetcher).__qualname__}"
    if not fetcher.auto_collation:
        return "batch_size=None: the loader makes no batches of items"
    return None
