"""What both kinds of iterator have in common while gpuutil serves them.

Why a shadow engine and not edits of torch's own tables: the iterator *object* stays and only its
class is swapped for a small subclass, so `isinstance`, reference counts and `__del__` are as before
(a closure on the instance would make a reference cycle, and an early `break` would leave workers
running). Its `_next_data` goes to a `Conveyor` with bookkeeping of its own, which checks the
sequence number of every batch and keeps the indices of every undelivered one. So hardly anything
private of torch's is relied on (`capability.py` has the list), a batch can always be fetched again,
and on any doubt the stock path takes over with nothing lost or doubled.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import samplers
from .conveyor import Conveyor, Doubt
from .faults import foreign
from .randomness import Watch

if TYPE_CHECKING:
    from .live import LiveLoader

ATTRIBUTE = "_gpuutil_engine"


class HandedBack:
    """Stands in for an engine that has let go, in case a signal handler raises before the class is
    swapped back."""

    def __init__(self, stock: type) -> None:
        self._stock = stock

    def next_data(self, iterator: Any) -> Any:
        iterator.__class__ = self._stock
        iterator.__dict__.pop(ATTRIBUTE, None)
        return self._stock._next_data(iterator)

    def abandon(self) -> None:
        """Nothing is held."""


class SamplerError:
    """Iterator that raises a kept error of the user's sampler once, in its place between index
    batches."""

    def __init__(self, error: Exception) -> None:
        self._error: Exception | None = error

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._error is None:
            raise StopIteration
        error, self._error = self._error, None
        raise error


class Engine:
    """One iterator's engine. Holds no reference to the iterator; lives in its `__dict__`."""

    def __init__(self, live: LiveLoader, iterator: Any) -> None:
        self.live = live
        self.belt: Conveyor | None = None
        self.facts = samplers.examine(iterator._index_sampler)
        self.sampler_watch: Watch = live.sampler_watch
        self.thread: int | None = None
        self.busy = False
        self.interrupted = False
        """A signal handler raised inside: what was just under way may have been lost."""
        self.stop_asked: str | None = None
        self._pid = os.getpid()

    # What a kind of iterator has to say:

    def hand_back(self, iterator: Any, reason: str | None) -> None:
        """Gives the iterator back to torch's code, at this very batch. `reason`: of a fallback."""
        raise NotImplementedError

    def needed(self) -> bool:
        """Whether there is anything to do or to look at for this iterator now."""
        raise NotImplementedError

    # ---- state

    @property
    def ours(self) -> bool:
        """False in a forked copy of the trainer."""
        return os.getpid() == self._pid

    def enter(self, iterator: Any) -> bool:
        """True if this call may use the engine. False: the iterator was handed back and torch's
        code goes on."""
        if not self.ours:
            self.live.forget_copy()
            self.hand_back(iterator, None)
            return False
        thread = threading.get_ident()
        if self.thread != thread:
            if self.thread is not None:
                while (
                    self.busy
                ):  # another thread is inside: it is told to hand back, and does within a second
                    self.stop_asked = "the iterator is used by two threads"
                    time.sleep(0.002)
                if iterator.__dict__.get(ATTRIBUTE) is self:
                    self.hand_back(iterator, "the iterator went to another thread")
                return False
            self.thread = thread
        self.busy = True
        return True

    def mishap(self, iterator: Any, error: BaseException) -> None:
        """After an exception in our code: hands back, and raises it again if it is not ours to
        keep."""
        if isinstance(error, Doubt):
            self.hand_back(iterator, str(error))
        elif isinstance(error, Exception) and not foreign(error):
            self.hand_back(iterator, f"an error of gpuutil's: {error!r}")
        else:
            self.interrupted = True
            self.hand_back(iterator, f"interrupted by {type(error).__name__}")
            raise error

    # ---- towards what is wanted

    def advance(self, iterator: Any, stock_workers: int) -> None:
        """One step of starting, admitting and retiring private workers. At most one fork."""
        if self.stop_asked is not None:
            raise Doubt(self.stop_asked)
        live = self.live
        pool = live.pool
        target = max(0, live.wanted_workers - stock_workers)
        if not pool.steady(target):
            loader = live.loader()
            if loader is None:
                return
            for worker in pool.step(target, loader, iterator, stock_workers):
                if self.belt is not None and worker in self.belt.members:
                    self.belt.retire(worker)
                else:
                    worker.end()
        belt = self.belt
        if belt is not None:
            belt.prefetch = live.wanted_prefetch
            for worker in pool.ready:
                if worker not in belt.members:
                    belt.add(worker)
            belt.reap()

    def sampler_allows(self) -> bool:
        """Whether the depth may differ from the stock loader's. An unknown sampler is watched for
        some reads first."""
        if self.facts.refusal is not None or self.sampler_watch.drew:
            return False
        return self.facts.known or self.sampler_watch.draws is False

    def drop_belt(self) -> None:
        """Forgets the conveyor, and ends workers that were on their way out."""
        belt, self.belt = self.belt, None
        if belt is not None and self.ours:
            for worker in belt.members:
                if not isinstance(worker, int) and worker not in self.live.pool.ready:
                    worker.end()

    def abandon(self) -> None:
        """The iterator is being finalised or starts a new epoch by itself: nobody waits for what is
        under way."""
        if self.ours:
            self.drop_belt()
            self.live.released(self)
