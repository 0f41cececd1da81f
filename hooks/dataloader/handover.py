"""Worker processes between two passes: taken out of the iterator that ended, put into the next one.

The next iterator is made by torch's own constructor. It is given a view of the loader whose
multiprocessing context hands out the queues, the event and the processes that are there instead of
new ones, so that everything else that the constructor does, in whatever order, is done.
"""

from __future__ import annotations

import functools
import inspect
import os
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, _utils
from torch.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter

from . import reseed
from .faults import foreign

_SILENT_SECONDS = 2.0
"""For an idle worker to answer."""
_PIN_THREAD_SECONDS = 5.0
_LEFT = (
    "_workers",
    "_index_queues",
    "_worker_result_queue",
    "_workers_done_event",
    "_workers_status",
    "_num_workers",
    "_persistent_workers",
    "_pin_memory",
)
"""What torch's `_shutdown_workers` reads."""


class Parked(_MultiProcessingDataLoaderIter):
    """Idle workers, in the shape of an iterator: torch's own code ends them, at the latest when
    this is collected."""

    proof: Any
    context: Any
    pid: int

    def __init__(self) -> None:
        """Made by `park` only: torch's constructor would start processes."""
        self._shutdown = True
        self._worker_pids_set = False

    @property
    def processes(self) -> list[Any]:
        return self._workers

    def end(self) -> None:
        """Ends the workers as torch does, and waits for them as torch does. May be called again."""
        self._shutdown_workers()

    def _shutdown_workers(self) -> None:
        if self._shutdown or self.pid != os.getpid():
            return  # a forked copy: the processes are the trainer's
        super()._shutdown_workers()
        if self._pin_memory:
            self._worker_result_queue.cancel_join_thread()
            self._worker_result_queue.close()

    def ask(self) -> None:
        """Asks every worker for a sign of life, which `silent` looks for.

        The workers make a new fetcher on it, as for each pass of a loader with persistent workers.
        Once all have answered nothing else of theirs can be in the queue.
        """
        for line in self._index_queues:
            line.put(_utils.worker._ResumeIteration(None))

    def silent(self) -> str | None:
        """Takes the answers. Returns what is wrong. They have mostly come while nobody waited."""
        missing, end = len(self._workers), time.monotonic() + _SILENT_SECONDS
        while missing:
            if not all(process.is_alive() for process in self._workers):
                return "a kept worker has ended"
            try:
                number, _ = self._worker_result_queue.get(timeout=0.1)
            except queue.Empty:
                if time.monotonic() > end:
                    return "a kept worker does not answer"
                continue
            missing -= isinstance(number, _utils.worker._ResumeIteration)
        return None


def park(iterator: Any, mark: str) -> Parked | None:
    """Takes the idle workers of an iterator that is about to end them; it has ended then.

    Args:
        mark: an attribute of the iterator that goes with them.

    Returns:
        None where anything is under way or not as it should be: nothing was touched.
    """
    fields = iterator.__dict__
    if not _idle(fields) or (fields["_pin_memory"] and not _end_pin_thread(fields)):
        return None
    parked = Parked()
    parked.__dict__.update({name: fields[name] for name in _LEFT})
    parked.pid = os.getpid()
    if fields["_worker_pids_set"]:
        # Between passes a stock loader has no workers whose death could be reported.
        _utils.signal_handling._remove_worker_pids(id(iterator))
        fields["_worker_pids_set"] = False
    ended = {**fields, "_workers": [], "_index_queues": [], "_shutdown": True}
    del ended[mark]
    armed = {**parked.__dict__, "_shutdown": False}
    iterator.__dict__ = ended  # no signal handler runs between these two
    parked.__dict__ = armed
    parked.ask()
    return parked


def _idle(fields: dict[str, Any]) -> bool:
    if fields.get("_shutdown", True) or fields.get("_dataset_kind") != _DatasetKind.Map:
        return False
    processes, status = fields.get("_workers", ()), fields.get("_workers_status", ())
    return (
        not fields.get("_task_info", True)
        and not fields.get("_tasks_outstanding", True)
        and len(processes) == len(status) == fields["_num_workers"]
        and all(status)
        and not fields["_persistent_workers"]
        and not fields["_workers_done_event"].is_set()
        and all(process.is_alive() for process in processes)
    )


# ---- the pin thread: each pass starts its own

_pills: dict[int, threading.Event] = {}


class _Pill:
    """Ends the thread that unpickles it, at a moment when it has nothing in hand. (With torch's
    event alone a thread that has just looked may leave the item that should have woken it.)"""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> Any:
        return _swallow, (self._number,)


def _swallow(number: int) -> None:
    _pills[number].set()


def _end_pin_thread(fields: dict[str, Any]) -> bool:
    number = id(fields)
    _pills[number] = fields["_pin_memory_thread_done_event"]
    try:
        fields["_worker_result_queue"].put((None, _Pill(number)))
        fields["_pin_memory_thread"].join(_PIN_THREAD_SECONDS)
        return not fields["_pin_memory_thread"].is_alive()
    finally:
        _pills.pop(number, None)


# ---- the next pass


def open_pass(loader: DataLoader, parked: Parked) -> Any:
    """A new iterator of the loader with the parked workers.

    Raises:
        Exception: what torch's constructor raises. Where that is not for the user (`faults.foreign`)
            the generator is as before.
    """
    generator = loader.generator if loader.generator is not None else torch.default_generator
    before = generator.get_state()
    context = _There(parked)
    try:
        iterator = DataLoader._get_iterator(_View(loader, context))  # type: ignore[arg-type]
        context.check()
    except Exception as error:
        if not foreign(error):
            generator.set_state(before)
        raise
    iterator._workers[:] = parked._workers
    iterator._index_queues[:] = parked._index_queues
    return iterator


@functools.cache
def _position(parameter: str) -> int:
    """Where torch hands this parameter of its worker loop to a process."""
    return list(inspect.signature(_utils.worker._worker_loop).parameters).index(parameter)


class _View:
    """The loader as torch's constructor reads it, with another multiprocessing context."""

    def __init__(self, loader: DataLoader, context: _There) -> None:
        self._loader = loader
        self.multiprocessing_context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _There:
    """A multiprocessing context in which everything has been made already.

    With the first process that it gives away the workers belong to the iterator under construction,
    whatever becomes of it.
    """

    def __init__(self, parked: Parked) -> None:
        self._parked = parked
        self._first_tasks = [_FirstTask(line) for line in parked._index_queues]
        self._queues: Iterator[Any] = iter([parked._worker_result_queue, *self._first_tasks])
        self._given = 0

    def Queue(self) -> Any:
        return next(self._queues)

    def Event(self) -> Any:
        return self._parked._workers_done_event

    def Process(self, target: Any, args: tuple[Any, ...]) -> _Running:
        number = args[_position("worker_id")]
        if number != self._given or args[_position("index_queue")] is not (
            self._first_tasks[number]
        ):
            raise AssertionError("torch's constructor starts its workers in another way")
        self._parked._shutdown = True
        self._given += 1
        self._first_tasks[number].seed(args[_position("base_seed")], number)
        return _Running(self._parked._workers[number])

    def check(self) -> None:
        if self._given != len(self._first_tasks) or next(self._queues, None) is not None:
            raise AssertionError("torch's constructor did not take all workers")


class _FirstTask:
    """An index queue as long as the constructor runs: the first task carries the seed."""

    def __init__(self, line: Any) -> None:
        self._line = line
        self._calls: tuple[Any, ...] = ()

    def seed(self, base_seed: int, worker: int) -> None:
        self._calls = reseed.seeding(base_seed, worker)

    def put(self, task: Any) -> None:
        if self._calls and task is not None:
            task = reseed.Task(task)
            task.calls, self._calls = self._calls, ()
        self._line.put(task)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)


class _Running:
    """A process that is to be started, and runs."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.daemon = True

    def start(self) -> None:
        """It runs."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)
