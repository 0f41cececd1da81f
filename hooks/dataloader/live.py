"""The live handle of one DataLoader: what is wanted of it, and how far that has come about."""

from __future__ import annotations

import dataclasses
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader, get_worker_info
from torch.utils.data.dataloader import (
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

from . import capability, samplers
from .engine import ATTRIBUTE, Engine
from .multi import Guarded, MultiEngine, MultiLive
from .pool import Pool
from .randomness import Watch
from .refusal import NotPossible
from .single import SingleEngine, SingleLive

__all__ = ["LiveLoader", "LiveState", "NotPossible"]

_SINGLE = (_SingleProcessDataLoaderIter, SingleLive)
_MULTI = (_MultiProcessingDataLoaderIter, MultiLive, Guarded)
_DEFAULT_PREFETCH = 2


@dataclasses.dataclass(frozen=True)
class LiveState:
    """A snapshot. Counts are of the running iterator, or of what waits for the next one.

    Attributes:
        workers_active: workers that get tasks, the user's own included.
        workers_starting: processes that have not reported ready yet.
        prefetch: batches per worker.
        effective: what was asked for is what runs.
        failures: why starts failed, oldest first.
        fallback_reason: why torch's own path took over; None while all is well. Cleared by the next
            request.
        draws_random: whether items draw from the global random generators; None if not observed.
        worker_pids: every worker of this loader that runs now, the user's own included.
        in_flight: undelivered batches that a worker has or had.
        ready: undelivered batches that have arrived.
    """

    workers_active: int
    workers_starting: int
    prefetch: int
    effective: bool
    failures: tuple[str, ...]
    fallback_reason: str | None
    draws_random: bool | None
    worker_pids: tuple[int, ...]
    in_flight: int
    ready: int


class LiveLoader:
    """Live changes to one loader. Outlives its iterators; holds the loader and the iterator weakly.

    `bind` and `request` are called on the thread that consumes the loader, between two `next()`
    calls.

    Args:
        loader: the user's loader, which is never modified.
        pool: where added workers come from; for tests.
        clock: seconds; for tests.
        checked: skips the check of torch's code; for the check itself.
    """

    def __init__(
        self,
        loader: DataLoader,
        pool: Pool | None = None,
        clock: Callable[[], float] = time.monotonic,
        checked: bool = False,
    ) -> None:
        self.loader = weakref.ref(loader)
        self.pool = pool or Pool()
        self.clock = clock
        self._checked = checked
        self.draws = Watch()
        self.sampler_watch = Watch()
        self._user_workers: int = loader.num_workers
        self._user_prefetch: int = loader.prefetch_factor or _DEFAULT_PREFETCH
        self._workers: int | None = None
        self._prefetch: int | None = None
        self._bound: weakref.ref[Any] | None = None
        self._holder: weakref.ref[Any] | None = None
        self._engine: Engine | None = None
        self._fallback: str | None = None
        self._closed = False

    # ---- public

    def supported(self, iterator: Any) -> str | None:
        """Why the iterator cannot be changed live; None if it can."""
        if type(iterator) not in _SINGLE + _MULTI:
            kind = type(iterator)
            return (
                f"not an iterator of torch's own DataLoader: {kind.__module__}.{kind.__qualname__}"
            )
        if iterator._dataset_kind != _DatasetKind.Map:
            return "the data set is iterable: its items belong to the number of workers"
        if isinstance(iterator._dataset, (IterDataPipe, MapDataPipe)):
            return "the data set is a data pipe: its items belong to the number of workers"
        if get_worker_info() is not None:
            return "this is a worker process"
        if getattr(iterator, "_shutdown", False):
            return "the iterator has ended"
        if isinstance(iterator, _MultiProcessingDataLoaderIter):
            if not iterator._in_order and (iterator._pin_memory or iterator._timeout):
                return "in_order=False beside pin_memory or timeout"
            why = None if self._checked else capability.multi_problem()
        else:
            why = None if self._checked else capability.single_problem()
        return why or samplers.examine(iterator._index_sampler).refusal

    def bind(self, iterator: Any) -> None:
        """Applies what is wanted to a new iterator, or to a persistent one that was started again.
        Never raises."""
        try:
            self._bind(iterator)
        except Exception as error:
            self._fallback = f"an error of gpuutil's: {error!r}"

    def request(self, workers: int | None = None, prefetch: int | None = None) -> None:
        """Asks for a number of active workers, or batches per worker. Comes about within the next
        `next()` calls.

        Raises:
            ValueError: a number that no loader could have.
            NotPossible: refused, with the reason; nothing was touched.
        """
        if workers is not None and (not isinstance(workers, int) or workers < 0):
            raise ValueError(f"workers must be a number from 0 up, not {workers!r}")
        if prefetch is not None and (not isinstance(prefetch, int) or prefetch < 1):
            raise ValueError(f"prefetch must be a number from 1 up, not {prefetch!r}")
        if self._closed:
            raise NotPossible("the handle of this loader is closed")
        if workers == 0 and self._user_workers:
            raise NotPossible("the loader has workers of its own: at least one stays")
        iterator, loader = self.iterator() or self._latest(), self.loader()
        if loader is None:
            raise NotPossible("the loader is gone")
        if iterator is not None:
            self._refuse_if_unsafe(loader, iterator, workers, prefetch)
        if workers is not None:
            self._workers = workers
            self.pool.gave_up = False
        if prefetch is not None:
            self._prefetch = prefetch
        self._fallback = None
        if iterator is not None:
            self._put_on(iterator)
        elif not self.wanted_workers:
            self.pool.drop_all()

    def _refuse_if_unsafe(
        self, loader: Any, iterator: Any, workers: int | None, prefetch: int | None
    ) -> None:
        if self._engine is not None and self._engine.thread not in (None, threading.get_ident()):
            raise NotPossible("not on the thread that calls next()")
        why = self.supported(iterator)
        if why is None and self.sampler_watch.drew:
            why = "the sampler draws random numbers while it is read: its depth must not change"
        back = workers in (None, self._user_workers) and prefetch in (None, self._user_prefetch)
        if why is not None and not back:
            raise NotPossible(why)
        more = (workers or 0) - self._user_workers
        if more > len(self.pool.ready) + len(self.pool.starting):
            self.pool.prepare(loader, iterator)

    @property
    def state(self) -> LiveState:
        """Any thread; cheap."""
        engine, pool = self._engine, self.pool
        belt = engine.belt if engine is not None else None
        iterator = self.iterator()
        private = len(pool.ready)
        stock_pids = [w.pid for w in getattr(iterator, "_workers", ())]
        prefetch = self.wanted_prefetch
        if belt is not None:
            active = belt.active
            settled = len(belt.owner) <= max(belt.depth, belt.read_ahead.stock_depth) and len(
                belt.members
            ) == (len(pool.ready) + len(stock_pids))
            if not self.wanted_workers:
                settled = False
            settled = settled and belt.prefetch == prefetch
        elif iterator is not None and self._user_workers:
            active = self._user_workers
            settled = prefetch == self._user_prefetch
        else:
            active = private if iterator is None else 0
            active += self._user_workers
            settled = True
        return LiveState(
            workers_active=active,
            workers_starting=len(pool.starting),
            prefetch=prefetch,
            effective=settled and not pool.starting and active == self.wanted_workers,
            failures=tuple(pool.failures),
            fallback_reason=self._fallback,
            draws_random=self.draws.draws,
            worker_pids=tuple(p for p in [*stock_pids, *(w.pid for w in pool.ready)] if p),
            in_flight=len(belt.owner) if belt is not None else 0,
            ready=len(belt.arrived) if belt is not None else 0,
        )

    def undo_all(self) -> None:
        """Back to what the user's loader says, within the next `next()` calls."""
        self._workers = self._prefetch = None
        if self.iterator() is None:
            self.pool.drop_all()

    def close(self) -> None:
        """Back to torch's own path now, and ends every process started here. Any thread; may be
        called again."""
        self._closed = True
        self._workers = self._prefetch = None
        iterator, engine = self.iterator(), self._engine
        if iterator is not None and engine is not None:
            if engine.busy and engine.thread != threading.get_ident():
                engine.stop_asked = "gpuutil was detached"
                end = time.monotonic() + 3
                while engine.busy and self._engine is engine and time.monotonic() < end:
                    time.sleep(0.002)
            if iterator.__dict__.get(ATTRIBUTE) is engine and not engine.busy:
                engine.hand_back(iterator, None)
        self.pool.close()

    def __del__(self) -> None:
        if self.__dict__.get("pool") is not None:
            self.pool.drop_all()

    # ---- for the iterator's engine

    @property
    def wanted_workers(self) -> int:
        return self._user_workers if self._workers is None else self._workers

    @property
    def wanted_prefetch(self) -> int:
        return self._user_prefetch if self._prefetch is None else self._prefetch

    @property
    def idle(self) -> bool:
        """Whether the user's own settings are all that is wanted, and nothing of ours runs."""
        return (
            self.wanted_workers == self._user_workers
            and (self.wanted_prefetch == self._user_prefetch or not self.wanted_workers)
            and not self.pool.ready
            and not self.pool.starting
        )

    def iterator(self) -> Any:
        """The iterator that holds the workers, or None."""
        return self._holder() if self._holder is not None else None

    def _latest(self) -> Any:
        """The iterator bound last, if it still runs."""
        iterator = self._bound() if self._bound is not None else None
        return None if iterator is None or getattr(iterator, "_shutdown", False) else iterator

    def acquire(self, engine: Engine, iterator: Any) -> bool:
        """Whether this iterator may use the workers: one at a time."""
        if self._engine is engine:
            return True
        other = self.iterator()
        if other is not None:
            if self._engine is None or self._engine.belt is not None or self._engine.busy:
                return False
            self._engine.hand_back(
                other, None
            )  # it has nothing under way; the younger iterator goes first
        self._holder, self._engine = weakref.ref(iterator), engine
        return True

    def ended(self, iterator: Any) -> None:
        """The iterator has delivered everything."""
        if self._bound is not None and self._bound() is iterator:
            self._bound = None

    def released(self, engine: Engine, reason: str | None = None) -> None:
        """An iterator ended, was dropped, or fell back for `reason`."""
        if self._engine is engine:
            self._holder = self._engine = None
            self.pool.next_generation()
        if reason is not None:
            self.refuse(reason)

    def refuse(self, reason: str) -> None:
        """Falls back to the user's settings; a later request may try again."""
        self._fallback = reason
        self._workers = self._prefetch = None
        self.pool.drop_all()

    def forget_copy(self) -> None:
        """In a forked copy of the trainer: the workers are not ours."""
        self.pool = Pool()
        self._workers = self._prefetch = None

    # ---- binding

    def _bind(self, iterator: Any) -> None:
        loader = self.loader()
        if self._closed or loader is None:
            return
        self._user_workers = loader.num_workers
        self._user_prefetch = loader.prefetch_factor or _DEFAULT_PREFETCH
        if self.supported(iterator) is not None:
            return
        self._bound = weakref.ref(iterator)
        if self.iterator() is None and (self.pool.ready or self.pool.starting):
            persistent = bool(loader.persistent_workers and loader.num_workers)
            if not self.pool.reusable(loader, iterator, persistent):
                self.pool.drop_all()
        self._put_on(iterator)

    def _put_on(self, iterator: Any) -> None:
        """Gives the iterator an engine if there is something to do or to look at."""
        if ATTRIBUTE in iterator.__dict__:
            return
        single = type(iterator) in _SINGLE
        engine: Engine = (SingleEngine if single else MultiEngine)(self, iterator)
        if not engine.needed():
            return
        iterator.__dict__[ATTRIBUTE] = engine
        iterator.__class__ = SingleLive if single else MultiLive
        self.acquire(engine, iterator)
