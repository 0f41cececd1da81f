"""0 -> N -> 0 workers in a running iterator of a loader without workers.

The object remains torch's single-process iterator (and the user's loader keeps `num_workers=0`);
while workers are wanted its batches come from the conveyor. Handing back is simple: the indices of
everything undelivered go in front of the sampler, and torch's own code fetches them in this
process, in order.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from .conveyor import Conveyor, Exhausted, NoWorker, ReadAhead, SamplerFailed
from .engine import ATTRIBUTE, Engine, HandedBack, SamplerError
from .randomness import Watch

if TYPE_CHECKING:
    from .live import LiveLoader

_MISSING = object()


class SingleLive(_SingleProcessDataLoaderIter):
    """torch's iterator while gpuutil looks at it or serves it."""

    def _next_data(self) -> Any:
        return self.__dict__[ATTRIBUTE].next_data(self)

    def __del__(self) -> None:
        engine = self.__dict__.get(ATTRIBUTE)
        if engine is not None:
            with contextlib.suppress(Exception):  # the interpreter may be half gone
                engine.abandon()


class SingleEngine(Engine):
    """See `engine.Engine`."""

    def __init__(self, live: LiveLoader, iterator: Any) -> None:
        super().__init__(live, iterator)
        self.reads = iterator._num_yielded

    def next_data(self, iterator: Any) -> Any:
        """The next batch for the user. Every exception that leaves it is the user's own."""
        if not self.enter(iterator):
            return _SingleProcessDataLoaderIter._next_data(iterator)
        try:
            failed, indices, data = None, _MISSING, _MISSING
            try:
                if self._prepare(iterator):
                    indices, _, data = self.belt.take()
            except NoWorker:
                if self.belt.tasks:
                    indices = self.belt.take_unsent()
                else:
                    self._leave()
            except SamplerFailed as failure:
                failed = failure.error
            except Exhausted:
                self.live.ended(iterator)
                self.hand_back(iterator, None)
            except BaseException as error:
                self.mishap(iterator, error)
            if failed is not None:
                raise failed
            if indices is _MISSING:
                return self._here(iterator)
            if data is _MISSING or isinstance(data, ExceptionWrapper):
                return self._again(iterator, indices, data)
            if iterator._pin_memory:
                data = _utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
            return data
        finally:
            self.busy = False

    def _prepare(self, iterator: Any) -> bool:
        """Moves towards what is wanted. True if the conveyor has the next batch."""
        live = self.live
        if not live.acquire(self, iterator):
            return False
        if self.sampler_watch.drew and live.wanted_workers:
            live.refuse(
                "the sampler draws random numbers while it is read: its depth must not change"
            )
        self.advance(iterator, 0)
        if self.belt is None:
            if not (live.pool.ready and self.sampler_allows()):
                return False
            self._engage(iterator)
        elif not live.wanted_workers and not self.belt.tasks and not self.belt.members:
            self._leave()
            return False
        return True

    def _leave(self) -> None:
        """Back to fetching in this process; nothing is undelivered."""
        belt = self.belt
        self.reads = belt.read_ahead.reads
        self.drop_belt()
        if belt.error is not None:
            raise SamplerFailed(belt.error)

    def _engage(self, iterator: Any) -> None:
        live = self.live
        self.belt = Conveyor(
            iterator._sampler_iter,
            live.pool.transport,
            ReadAhead(0, self.facts.tail, self.reads, self.reads),
            generation=live.pool.next_generation(),
            prefetch=live.wanted_prefetch,
            first=self.reads,
            watch=None if self.facts.known else self.sampler_watch.read,
            clock=live.clock,
        )
        for worker in live.pool.ready:
            self.belt.add(worker)

    def _here(self, iterator: Any) -> Any:
        """A batch fetched in this process, as torch does it."""
        if iterator.__dict__.get(ATTRIBUTE) is not self:
            return _SingleProcessDataLoaderIter._next_data(iterator)
        watch = self.live.draws
        if not self.facts.known and (self.sampler_watch.wanting or self.live.wanted_workers):
            index = self.sampler_watch.call(iterator._next_index)
        elif watch.wanting:
            index = iterator._next_index()
        else:
            if self.live.idle and self.facts.tail is None:
                self.hand_back(iterator, None)
            self.reads += 1
            return _SingleProcessDataLoaderIter._next_data(iterator)
        self.reads += 1
        fetch = iterator._dataset_fetcher.fetch
        data = watch.call(fetch, index) if watch.wanting else fetch(index)
        if iterator._pin_memory:
            data = _utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
        return data

    def _again(self, iterator: Any, indices: Any, failure: Any) -> Any:
        """Fetches a batch here that no worker has, or that failed in one: the user gets exactly
        their own error.

        If it fails only there, the workers are no place for this data set.
        """
        watch: Watch = self.live.draws
        fetch = iterator._dataset_fetcher.fetch
        try:
            data = watch.call(fetch, indices) if watch.wanting else fetch(indices)
        except Exception:
            raise
        except BaseException:
            self.hand_back(iterator, "interrupted", first=[indices])
            raise
        if failure is not _MISSING:
            self.hand_back(
                iterator, f"a batch fails in a worker process only: {_last_line(failure)}"
            )
        if iterator._pin_memory:
            data = _utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
        return data

    # ---- the end

    def hand_back(self, iterator: Any, reason: str | None, first: list[Any] | None = None) -> None:
        belt = self.belt
        source = iterator._sampler_iter
        waiting = list(first or []) + (list(belt.tasks.values()) if belt is not None else [])
        failed = [SamplerError(belt.error)] if belt is not None and belt.error is not None else []
        if waiting or failed:
            source = itertools.chain(waiting, *failed, source)
        # One C call: no signal handler can come between the new source and the end of the old
        # engine.
        iterator.__dict__.update({"_sampler_iter": source, ATTRIBUTE: _DONE})
        iterator.__class__ = _SingleProcessDataLoaderIter
        iterator.__dict__.pop(ATTRIBUTE, None)
        self.drop_belt()
        self.live.released(self, reason)

    def needed(self) -> bool:
        live = self.live
        return (
            not live.idle
            or live.draws.wanting
            or self.facts.tail is not None
            or not (self.facts.known or self.sampler_watch.draws is not None)
        )


_DONE = HandedBack(_SingleProcessDataLoaderIter)


def _last_line(failure: ExceptionWrapper) -> str:
    lines = str(failure.exc_msg).strip().splitlines()
    return lines[-1] if lines else "unknown"
