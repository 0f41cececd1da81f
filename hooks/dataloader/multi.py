"""More, fewer or deeper workers in a running iterator of a loader that has workers of its own.

The stock workers are adopted as members of the conveyor, together with what they have in flight;
added workers have private lines. What the stock workers answer still comes through torch's own
`_get_data`, so a dead one gives the stock error and `timeout=` works. Handing back writes torch's
tables anew from ours.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from .conveyor import Conveyor, Exhausted, NoWorker, ReadAhead, SamplerFailed, TimedOut
from .engine import ATTRIBUTE, Engine, HandedBack, SamplerError
from .keep import KEEP
from .stock_transport import StockTransport

if TYPE_CHECKING:
    from .live import LiveLoader

_AMBIGUOUS = "_gpuutil_ambiguous"


class MultiLive(_MultiProcessingDataLoaderIter):
    """torch's iterator while gpuutil looks at it or serves it."""

    def _next_data(self) -> Any:
        return self.__dict__[ATTRIBUTE].next_data(self)

    def _next_index(self) -> Any:
        engine = self.__dict__.get(ATTRIBUTE)
        if engine is None or engine.facts.known:
            return super()._next_index()
        return engine.sampler_watch.call(super()._next_index)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        _let_go(self)
        self.__dict__.pop(_AMBIGUOUS, None)
        _MultiProcessingDataLoaderIter._reset(self, loader, first_iter)

    def _shutdown_workers(self) -> None:
        engine = self.__dict__.get(ATTRIBUTE)
        if engine is not None and not engine.ours:
            return  # a forked copy: ending "its" workers would end the trainer's
        if engine is not None and engine.belt is not None:
            self.__dict__.pop(KEEP, None)  # left in the middle: the workers have tasks under way
        with contextlib.suppress(Exception):
            _let_go(self)
        _MultiProcessingDataLoaderIter._shutdown_workers(self)


class Guarded(_MultiProcessingDataLoaderIter):
    """torch's iterator after a hand-back, as long as more is under way than torch's own code allows
    for."""

    def _try_put_index(self) -> None:
        depth = self._prefetch_factor * self._num_workers
        if len(self._task_info) < depth and self._tasks_outstanding < depth:
            super()._try_put_index()
            if _AMBIGUOUS not in self.__dict__:
                self.__class__ = _MultiProcessingDataLoaderIter

    def _get_data(self) -> Any:
        while True:
            index, data = super()._get_data()
            if not isinstance(index, int) or len(self._task_info.get(index, ())) == 1:
                return index, data  # else a second answer to a task that had to be sent twice

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self.__dict__.pop(_AMBIGUOUS, None)
        self.__class__ = _MultiProcessingDataLoaderIter
        self._reset(loader, first_iter)


def _let_go(iterator: Any) -> None:
    engine = iterator.__dict__.pop(ATTRIBUTE, None)
    iterator.__class__ = _MultiProcessingDataLoaderIter
    if engine is not None:
        engine.abandon()


class MultiEngine(Engine):
    """See `engine.Engine`."""

    def __init__(self, live: LiveLoader, iterator: Any) -> None:
        super().__init__(live, iterator)
        self.transport = StockTransport(live.pool.transport)
        self._parked: set[int] = set()

    def next_data(self, iterator: Any) -> Any:
        """The next batch for the user. Errors are the stock loader's."""
        if not self.enter(iterator):
            return iterator._next_data()
        try:
            failed, mine, data, over = None, False, None, False
            self.transport.iterator = iterator
            try:
                if self._prepare(iterator):
                    _, worker, data = self.belt.take()
                    mine, over = not isinstance(worker, int), True
            except SamplerFailed as failure:
                failed = failure.error
            except TimedOut:
                self.hand_back(
                    iterator, "a batch of an added worker took longer than the loader's timeout"
                )
                failed = RuntimeError(f"DataLoader timed out after {iterator._timeout} seconds")
            except Exhausted:
                self.live.ended(iterator)
                self.hand_back(iterator, None)
            except NoWorker:
                self.hand_back(iterator, "no worker is left")
            except BaseException as error:
                stock = error is self.transport.error
                self.transport.error = None
                if stock:
                    self.interrupted = not isinstance(error, Exception)
                    self.hand_back(iterator, f"the loader's own workers failed: {error!r}")
                    raise
                self.mishap(iterator, error)
            if failed is not None:
                raise failed
            if not over:
                if iterator.__dict__.get(ATTRIBUTE) is not self:
                    return iterator._next_data()
                return _MultiProcessingDataLoaderIter._next_data(iterator)
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            if mine and iterator._pin_memory:
                data = _utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
            return data
        finally:
            self.transport.iterator = None
            self.busy = False

    # ---- towards what is wanted

    def _prepare(self, iterator: Any) -> bool:
        """Moves towards what is wanted. True if the conveyor has the next batch."""
        live = self.live
        if not live.acquire(self, iterator):
            return False
        if self.sampler_watch.drew and self._differs(iterator):
            live.refuse(
                "the sampler draws random numbers while it is read: its depth must not change"
            )
        self.advance(iterator, iterator._num_workers)
        if self.belt is None:
            if not self._differs(iterator):
                if live.idle and not self._looking():
                    self.hand_back(iterator, None)
                return False
            if iterator._shutdown or not self.sampler_allows():
                return False
            self._engage(iterator)
            self.advance(iterator, iterator._num_workers)
        parked = set(
            range(min(max(1, live.wanted_workers), iterator._num_workers), iterator._num_workers)
        )
        for worker in parked ^ self._parked:
            self.belt.park(worker, worker in parked)
        self._parked = parked
        if live.idle and self._can_go_back(iterator):
            self.hand_back(iterator, None)
            return False
        return True

    def _differs(self, iterator: Any) -> bool:
        live = self.live
        return (
            live.wanted_workers != iterator._num_workers
            or live.wanted_prefetch != iterator._prefetch_factor
        )

    def _looking(self) -> bool:
        return not self.facts.known and self.sampler_watch.wanting

    def needed(self) -> bool:
        return not self.live.idle or self._looking()

    def _engage(self, iterator: Any) -> None:
        live = self.live
        out, tables = iterator._rcvd_idx, iterator._task_info
        while out < iterator._send_idx and out not in tables:
            out += 1
        depth = iterator._prefetch_factor * iterator._num_workers
        sent = iterator._send_idx
        belt = Conveyor(
            iterator._sampler_iter,
            self.transport,
            ReadAhead(depth, self.facts.tail, sent, sent - len(tables)),
            generation=live.pool.next_generation(),
            prefetch=live.wanted_prefetch,
            in_order=iterator._in_order,
            first=out,
            timeout=iterator._timeout,
            watch=None if self.facts.known else self.sampler_watch.read,
            clock=live.clock,
        )
        for worker in range(iterator._num_workers):
            belt.add(worker)
        for seq in sorted(tables):
            worker, *data = tables[seq]
            belt.adopt(seq, worker, bool(data), data[0] if data else None)
        belt.skip_to(sent)
        self.transport.generation = belt.generation
        self.transport.owners = belt.owner
        self._parked = set()
        self.belt = belt

    # ---- the end

    def _can_go_back(self, iterator: Any) -> bool:
        belt = self.belt
        depth = iterator._prefetch_factor * iterator._num_workers
        private = any(not isinstance(w, int) for w in belt.members)
        return not private and len(belt.tasks) <= depth and len(belt.owner) == len(belt.tasks)

    def hand_back(self, iterator: Any, reason: str | None) -> None:
        belt = (
            self.belt if self.ours else None
        )  # a forked copy must not write to the trainer's queues
        changes: dict[str, Any] = {}
        if belt is not None:
            changes = self._tables(iterator, belt)
        deep = (
            len(changes.get("_task_info", ())) > iterator._prefetch_factor * iterator._num_workers
        )
        guarded = deep or _AMBIGUOUS in changes or _AMBIGUOUS in iterator.__dict__
        stock = Guarded if guarded else _MultiProcessingDataLoaderIter
        # One C call: no signal handler can come between the new tables and the end of the old
        # engine.
        iterator.__dict__.update({**changes, ATTRIBUTE: HandedBack(stock)})
        iterator.__class__ = stock
        iterator.__dict__.pop(ATTRIBUTE, None)
        prime = belt is not None and ("_sampler_iter" in changes or not belt.exhausted)
        self.drop_belt()
        self.live.released(self, reason)
        if prime and not iterator._shutdown:
            depth = iterator._prefetch_factor * iterator._num_workers
            while len(iterator._task_info) < depth:
                before = iterator._send_idx
                iterator._try_put_index()
                if iterator._send_idx == before:
                    break

    def _tables(self, iterator: Any, belt: Conveyor) -> dict[str, Any]:
        """torch's bookkeeping for what is undelivered. Unfinished tasks of added workers go to
        stock ones again."""
        tasks, owner = belt.tasks, belt.owner
        arrived = {**self.transport.taken, **belt.arrived}
        doubtful = set(
            belt.unsent
        )  # in `owner` too if a signal handler raised while it was being sent
        if self.interrupted:
            # An answer may have been lost between torch's queue and us: asked for again. (Not so
            # for tasks that were adopted; there the window is torch's own.)
            doubtful.update(seq for seq, indices in tasks.items() if indices is not None)
        stays = [s for s in tasks if s in arrived or isinstance(owner.get(s), int)]
        last = max(stays, default=belt.next_out - 1)
        info: dict[int, Any] = {}
        load = [0] * iterator._num_workers
        outstanding, ahead, twice = 0, [], False
        for seq, indices in tasks.items():
            worker = owner.get(seq)
            if seq > last:
                ahead.append(indices)
                continue
            stock = isinstance(worker, int)
            if not stock:
                worker = self._any_alive(iterator, load)
            if seq in arrived:
                data = arrived[seq]
                if not stock and iterator._pin_memory and not isinstance(data, ExceptionWrapper):
                    data = _utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
                info[seq] = (worker, data)
            else:
                if not stock or seq in doubtful:
                    twice = twice or stock
                    iterator._index_queues[worker].put((seq, indices))
                info[seq] = (worker,)
                outstanding += 1
            load[worker] += 1
        failed = [SamplerError(belt.error)] if belt.error is not None else []
        changes: dict[str, Any] = {
            "_task_info": info,
            "_send_idx": last + 1,
            "_rcvd_idx": min(info, default=last + 1),
            "_tasks_outstanding": outstanding,
            "_workers_num_tasks": load,
        }
        if ahead or failed:
            changes["_sampler_iter"] = itertools.chain(ahead, *failed, belt.source)
        if twice:
            changes[_AMBIGUOUS] = True
        return changes

    def _any_alive(self, iterator: Any, load: list[int]) -> int:
        everyone = range(iterator._num_workers)
        alive = [w for w in everyone if iterator._workers_status[w]]
        return min(
            alive or everyone, key=load.__getitem__
        )  # with none alive torch's own error comes next
