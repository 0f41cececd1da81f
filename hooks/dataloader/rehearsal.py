"""Workers that live in this process: to try the engine on an unknown torch, and for tests with a
mind of their own.

`RehearsalContext` stands in for a multiprocessing context, so that torch's real multi-process
iterator runs with stock workers that are plain objects; `RehearsalPool` does the same for added
workers. A subclass of `Schedule` decides who answers when.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _DatasetKind

from .conveyor import Key
from .pool import Pool, Recipe
from .transport import ProcessTransport


class Starved(Exception):
    """A real loader would hang here."""


class Schedule:
    """Who answers next. This one: the first that can, at once."""

    def order(self, candidates: list[Any]) -> list[Any]:
        """Those of `candidates` (workers with tasks) that finish one task now, in this order."""
        return candidates[:1]


def fetch(fetcher: Any, indices: Any) -> Any:
    """A batch, or the wrapped exception, as torch's worker loop makes it."""
    try:
        return fetcher.fetch(indices)
    except Exception:
        return ExceptionWrapper(where="in a rehearsal worker")


# ---- the stock iterator's world


class RehearsalContext:
    """The part of a multiprocessing context that torch's iterator uses."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.processes: list[_StockProcess] = []

    def Queue(self) -> _Queue:
        return _Queue(self)

    def Event(self) -> threading.Event:
        return threading.Event()

    def Process(self, target: Any, args: tuple[Any, ...]) -> _StockProcess:
        process = _StockProcess(args)
        self.processes.append(process)
        return process

    def get_start_method(self, allow_none: bool = False) -> str:
        return "fork"


class _Queue:
    """An index queue (torch puts, the worker takes) or the result queue (torch takes what workers
    made by then)."""

    def __init__(self, context: RehearsalContext) -> None:
        self.items: deque[Any] = deque()
        self._context = context
        self._idle = 0

    def put(self, item: Any) -> None:
        self.items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        if not self.items:
            self._work()
        if self.items:
            self._idle = 0
            return self.items.popleft()
        self._idle += 1
        if self._idle > 50:
            raise Starved("nobody has a task, and an answer is waited for")
        raise queue.Empty

    def empty(self) -> bool:
        return not self.items

    def _work(self) -> None:
        ready = [p for p in self._context.processes if p.results is self and p.tasks.items]
        for process in self._context.schedule.order(ready) if ready else []:
            item = process.work()
            if item is not None:
                self.items.append(item)

    def cancel_join_thread(self) -> None:
        """No thread."""

    close = cancel_join_thread


class _StockProcess:
    def __init__(self, args: tuple[Any, ...]) -> None:
        kind, dataset, self.tasks, self.results, _, auto_collation, collate, drop_last, *_ = args
        dataset = dataset[0] if isinstance(dataset, list) and len(dataset) == 1 else dataset
        self._fetcher = _DatasetKind.create_fetcher(
            kind, dataset, auto_collation, collate, drop_last
        )
        self.daemon = True
        self.pid = os.getpid()  # not a child of ours: torch's check for dead workers skips it
        self._alive = False

    def start(self) -> None:
        self._alive = True

    def work(self) -> Any:
        task = self.tasks.items.popleft()
        if task is None:
            self._alive = False
            return None
        if not isinstance(task, tuple):
            return task, None  # the acknowledgement of a new epoch
        return task[0], fetch(self._fetcher, task[1])

    def is_alive(self) -> bool:
        return self._alive

    def join(self, timeout: float | None = None) -> None:
        self._alive = False

    terminate = join


def rehearse(loader: DataLoader, schedule: Schedule) -> RehearsalContext:
    """Makes a loader with `num_workers > 0` start its workers as plain objects."""
    context = RehearsalContext(schedule)
    loader.__dict__["_DataLoader__multiprocessing_context"] = context
    return context


# ---- an added worker


class RehearsalWorker:
    """An added worker; `ready` at the first look unless told otherwise."""

    def __init__(self, recipe: Recipe) -> None:
        parts = recipe.parts
        self.fetcher = _DatasetKind.create_fetcher(
            parts.kind, parts.dataset, parts.auto_collation, parts.collate, parts.drop_last
        )
        self.tasks: deque[tuple[Key, Any]] = deque()
        self.ready = False
        self.failure: str | None = None
        self.pid = None
        self.ended = threading.Event()

    def poll(self) -> bool:
        self.ready = self.failure is None
        return True

    def end(self) -> None:
        self.ended.set()


class RehearsalTransport(ProcessTransport):
    """Every answer comes when somebody asks for it."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def send(self, worker: Any, key: Key, indices: Any) -> None:
        worker.tasks.append((key, indices))

    def receive(
        self, owner: Hashable | None, workers: Iterable[Any], timeout: float
    ) -> list[tuple[Any, Key, Any]]:
        ready = [w for w in workers if w.tasks]
        events = []
        for worker in self.schedule.order(ready) if ready and timeout else []:
            key, indices = worker.tasks.popleft()
            events.append((worker, key, fetch(worker.fetcher, indices)))
        return events

    def forget(self, workers: Iterable[Any]) -> None:
        for worker in workers:
            worker.tasks.clear()


class RehearsalPool(Pool):
    """A pool of `RehearsalWorker`s."""

    def __init__(self, transport: RehearsalTransport) -> None:
        super().__init__(transport)

    def _start(self, recipe: Recipe, missing: int, target: int, seed: int, first_id: int) -> None:
        worker: Any = RehearsalWorker(recipe)
        self._everyone.append(worker)
        self._fingerprints[worker] = recipe.fingerprint
        self.starting.append(worker)
