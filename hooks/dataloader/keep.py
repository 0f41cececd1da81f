"""A loader's own worker processes, kept from one pass to the next without `persistent_workers`.

What the user's code sees stays as it was: every pass has an iterator object of its own, made by
torch's constructor with everything that the constructor does (`iter(sampler)` twice, the base seed
drawn), and the loader is not touched. Only the processes and queues are not new: torch's
constructor gets those of the pass that ended (`handover.py`), and the first task of each worker
carries the new seed (`reseed.py`). A pass hands them over where torch would end them, in
`_shutdown_workers` (patched by `patch.py`), and only if nothing is under way and all is well; in every
other case (an early break, an error, a dead worker, two iterators at once) they end as ever.
"""

from __future__ import annotations

import dataclasses
import os
import time
import weakref
from typing import Any

from torch.utils.data import DataLoader, _utils, get_worker_info
from torch.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

from . import capability
from .faults import foreign
from .handover import Parked, open_pass, park
from .payload import Parts, has_epoch_state
from .refusal import NotPossible
from .unchanged import Proof, prove

KEEP = "_gpuutil_keep"
_LEAST_SECONDS, _MOST_SECONDS = 0.03, 0.25
"""What a proof may take: half of what it saves, within these."""
_RETRIES = 3
_PATIENCE = 3
"""Passes with fresh workers after which keeping has failed; the first one has to have them."""


@dataclasses.dataclass(frozen=True)
class Lease:
    """In the `__dict__` of an iterator whose workers may be kept. Refers to no iterator."""

    keeper: Keeper
    proof: Proof
    context: Any
    pid: int


@dataclasses.dataclass(frozen=True)
class Prospect:
    """What keeping would mean for this loader. `refusal`, `reason`: empty where there is none."""

    refusal: str = ""
    exactness: str = "exact"
    reason: str = ""


class Keeper:
    """One loader's. Holds the loader and its iterators weakly.

    `reopen` and `bind` are called on the thread that iterates, `take` wherever an iterator ends.

    Args:
        loader: the user's loader, which is never modified.
        checked: skips the check of torch's code; for the check itself.
    """

    def __init__(self, loader: DataLoader, checked: bool = False) -> None:
        self.loader = weakref.ref(loader)
        self.wanted = False
        self.passes = 0
        """Passes over the loader that began since it is known."""
        self._checked = checked
        self._slot: list[Parked] = []
        self._current: weakref.ref[Any] | None = None
        self._reused = False
        self._changes = 0
        self._missed = 0
        self._began = 0.0
        self._start_seconds = 0.0
        self._prospect: Prospect | None = None
        self._looked_at = 0
        self._retry = 0
        self._problem: str | None = None
        self._closed = False

    # ---- what is wanted

    def prospect(self) -> Prospect:
        """Whether and how exactly the workers could be kept. Looked into once; costs up to what a
        proof may take. Where that ran out of time a later pass gets another chance."""
        if self._prospect is None or (self._retry > 0 and self.passes != self._looked_at):
            self._looked_at = self.passes
            self._prospect = self._examine()
        return self._prospect

    def request(self, keep: bool) -> None:
        """Keeps workers that are started from now on, or ends them with the pass that has them.

        Raises:
            NotPossible: with the reason; nothing was changed.
        """
        if keep and self._closed:
            raise NotPossible("the handle of this loader is closed")
        if keep and self.prospect().refusal:
            raise NotPossible(self.prospect().refusal)
        self.wanted = keep
        self._changes, self._missed, self._problem = 0, 0, None
        if not keep:
            self._end_parked()

    @property
    def in_effect(self) -> bool:
        """Whether the running pass has workers as they are wanted: kept ones, or fresh ones."""
        return self._reused == self.wanted

    @property
    def reusing(self) -> bool:
        """Whether the running pass has the workers of the one before."""
        return self._reused

    @property
    def problem(self) -> str | None:
        """Why what is wanted does not come about; None while nothing speaks against it."""
        return self._problem if self.wanted and not self._reused else None

    # ---- the turn

    def reopen(self, loader: DataLoader) -> Any:
        """The iterator of a new pass with kept workers; None where torch has to start fresh ones.

        Raises:
            Exception: only what the user's own code raises in it, as the stock loader would.
        """
        self._began = time.monotonic()
        self.passes += 1
        try:
            parked = self._slot.pop()
        except IndexError:
            return None
        try:
            reason = self._unfit(loader, parked)
            if reason is None:
                iterator = open_pass(loader, parked)
                iterator.__dict__[KEEP] = Lease(self, parked.proof, parked.context, os.getpid())
                self._current, self._reused = weakref.ref(iterator), True
                self._changes, self._missed, self._problem = 0, 0, None
                return iterator
            parked.end()
        except BaseException as error:
            parked.end()
            if foreign(error) or not isinstance(error, Exception):
                raise
            reason = _words(error)
        self._fresh_because(reason)
        return None

    def bind(self, iterator: Any, fresh: bool = True) -> None:
        """An iterator of the loader, before its first batch where `fresh`. Never raises."""
        if self._current is not None and self._current() is iterator:
            return
        if not self._second():
            self._current, self._reused = weakref.ref(iterator), False
        if not fresh:
            return
        if self.passes:
            self._start_seconds = time.monotonic() - self._began
        loader = self.loader()
        if not self.wanted or self._closed or loader is None or loader.persistent_workers:
            return
        self._missed += 1
        if self._missed > _PATIENCE and self._problem is None:
            self._problem = "the loop leaves the loader before its end, or keeps its iterators"
        try:
            if not isinstance(iterator, _MultiProcessingDataLoaderIter):
                return
            proof = prove(_parts(loader), self._budget)
            context = loader.multiprocessing_context
            iterator.__dict__[KEEP] = Lease(self, proof, context, os.getpid())
        except Exception as error:
            self._problem = _words(error)

    def take(self, iterator: Any, lease: Lease) -> bool:
        """Takes the workers of an iterator that would end them now. False: they shall end."""
        if self._closed or not self.wanted or self._slot or os.getpid() != lease.pid:
            return False
        parked = park(iterator, KEEP)
        if parked is None:
            return False
        parked.proof, parked.context = lease.proof, lease.context
        self._slot.append(parked)
        if self._closed:  # meanwhile, on another thread
            self._end_parked()
        return True

    def close(self) -> None:
        """Ends every worker that no pass has, and keeps none from now on. Any thread."""
        self._closed, self.wanted = True, False
        self._end_parked()
        iterator = self._current() if self._current is not None else None
        if iterator is not None:
            iterator.__dict__.pop(KEEP, None)

    # ---- within

    @property
    def _budget(self) -> float:
        if self._checked:
            return 60.0
        return min(max(_LEAST_SECONDS, self._start_seconds / 2), _MOST_SECONDS)

    def _second(self) -> bool:
        """Whether a pass with kept workers is still under way: a new one runs beside it."""
        first = self._current() if self._reused and self._current is not None else None
        return first is not None and not getattr(first, "_shutdown", True)

    def _end_parked(self) -> None:
        while self._slot:
            self._slot.pop().end()

    def _unfit(self, loader: DataLoader, parked: Parked) -> str | None:
        """Why the workers cannot serve this pass."""
        if not self.wanted or os.getpid() != parked.pid:
            return "not wanted"
        if (
            loader.num_workers != len(parked.processes)
            or loader.multiprocessing_context is not parked.context
            or loader.persistent_workers
        ):
            return "the loader's settings changed"
        now = prove(_parts(loader), self._budget)
        if now.digest != parked.proof.digest:
            self._changes += 1
            return "the data set changed between two epochs"
        return parked.silent()

    def _fresh_because(self, reason: str) -> None:
        # A data set may be changed now and then (a new size of images); one that always is gains nothing.
        if self._changes != 1:
            self._problem = reason

    def _examine(self) -> Prospect:
        loader = self.loader()
        refusal = "the loader is gone" if loader is None else self._impossible(loader)
        if refusal is None:
            try:
                proof = prove(_parts(loader), self._budget)
                self._retry = 0
            except NotPossible as error:
                self._retry = self._retry - 1 if self._retry else _RETRIES
                refusal = str(error)
        if refusal is not None:
            return Prospect(refusal)
        assert loader is not None
        if loader.worker_init_fn is not None:
            reason = "worker_init_fn runs when a worker starts, no longer in every epoch"
            return Prospect("", "distribution", reason)
        if proof.owns_generator:
            reason = "the data set has a random generator of its own, which a kept worker moves on"
            return Prospect("", "distribution", reason)
        return Prospect()

    def _impossible(self, loader: DataLoader) -> str | None:
        if get_worker_info() is not None:
            return "this is a worker process"
        for cls in type(loader).__mro__:
            if cls is DataLoader:
                break
            if {"__iter__", "_get_iterator"} & vars(cls).keys():
                return f"{cls.__module__}.{cls.__qualname__} makes iterators of its own"
        if loader._dataset_kind != _DatasetKind.Map:
            return "the data set is iterable: its workers have to be fresh in each epoch"
        if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
            return "the data set is a data pipe: its workers have to be fresh in each epoch"
        if has_epoch_state(loader.dataset):
            return "the data set is told the epoch: its workers have to be fresh in each epoch"
        return None if self._checked else capability.keep_problem()


def hand_over(iterator: Any) -> bool:
    """In place of torch's `_shutdown_workers`: whether a keeper has the workers now."""
    lease = iterator.__dict__.get(KEEP)
    if lease is None:
        return False
    try:
        if _utils.python_exit_status is not False:
            return False
        return lease.keeper.take(iterator, lease)
    except Exception as error:
        if foreign(error):
            raise
        return False


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, NotPossible) else f"an error of gpuutil's: {error!r}"


def _parts(loader: Any) -> Parts:
    """What a new iterator would give to its workers."""
    return Parts(_Facts(loader), loader.worker_init_fn)


class _Facts:
    """The fields of an iterator that `Parts` reads, before there is one."""

    def __init__(self, loader: Any) -> None:
        self._dataset_kind = loader._dataset_kind
        self._dataset = loader.dataset
        self._auto_collation = loader._auto_collation
        self._collate_fn = loader.collate_fn
        self._drop_last = loader.drop_last
        self._persistent_workers = loader.persistent_workers
        self._shared_seed = None


class Rehearsed(_MultiProcessingDataLoaderIter):
    """An iterator whose workers may be kept although nothing is patched; for the check of torch's
    code."""

    def _shutdown_workers(self) -> None:
        if not hand_over(self):
            super()._shutdown_workers()
