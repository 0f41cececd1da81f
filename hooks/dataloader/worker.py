"""One worker process that gpuutil started: start, ready report, end.

A worker is held in a module-level set from its start until it has really ended. Else, when an
iterator dies in a reference cycle (any error that the user catches from `next()` makes one), the
collector could finalise the line before anybody told the process to end. Ending is asked for
without waiting; a thread that lives only while there is something to end waits, terminates and
kills. In a forked copy of the trainer all of this is forgotten.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import multiprocessing
import os
import select
import socket
import threading
import time
import warnings
from multiprocessing import connection
from typing import Any

from . import channel, launch, worker_main
from .payload import Parts

READY_SECONDS = {"fork": 30.0, "forkserver": 120.0, "spawn": 120.0}
"""Deadline for the ready report, by start method: a cold fork server imports torch first."""
GRACE_SECONDS = 5.0
"""A worker may finish the batch in hand before it is terminated, as in torch: it may hold a lock of
the user's."""

_held: set[Worker] = set()
_ending: list[Worker] = []
# Re-entrant: the collector may run a finaliser of ours, which ends workers, on a thread that is
# inside.
_ending_lock = threading.RLock()
_reaper: threading.Thread | None = None
_hooked = False
_forking = False


class Worker:
    """One process. All methods are called on the consumer's thread unless they say otherwise.

    Args:
        method: start method.
        seed, worker_id, total: what torch's worker loop is told.
        import_main: whether the child has to import the main script (fork server and spawn).
    """

    def __init__(
        self, method: str, seed: int, worker_id: int, total: int, import_main: bool = False
    ) -> None:
        self.failure: str | None = None
        self.ready = False
        self.ended = threading.Event()
        self.unwanted = False
        self._method = method
        self._import_main = import_main
        self._owner_pid = os.getpid()
        self._end_at = 0.0
        self._deadline = time.monotonic() + READY_SECONDS[method]
        self._sock, self._child_sock = socket.socketpair()
        self.line = channel.Channel(self._sock)
        self._arguments = (seed, worker_id, total)
        self.process: Any = None
        self._lock = threading.RLock()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    # ---- start

    def fork(self, parts: Parts) -> None:
        """Starts by fork, here and now. Raises OSError when the system refuses."""
        _hook()
        _held.add(self)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(
            target=_forked,
            args=(self, parts, *self._arguments),
            daemon=True,
            name="gpuutil-loader-worker",
        )
        global _forking
        _forking = True
        try:
            with warnings.catch_warnings():
                # Python warns about forking beside threads; a stock loader with workers forks just
                # the same.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.process.start()
        except BaseException:
            if self.process.pid is None:
                self._drop()
            else:
                self.end()
            raise
        finally:
            _forking = False
            self._child_sock.close()

    def start_remote(self, payload: bytes) -> None:
        """Starts by fork server or spawn and hands over the payload. On a starting thread; never
        raises."""
        context = multiprocessing.get_context(self._method)
        process = context.Process(
            target=worker_main.run, args=(self._child_sock, None, *self._arguments), daemon=True,
            name="gpuutil-loader-worker",
        )  # fmt: skip
        try:
            if not self.unwanted:
                launch.launch(process, self._method, self._import_main)
                with self._lock:
                    self.process = process
                self._child_sock.close()
                self._send_payload(payload)
        except Exception as error:
            self.failure = f"a worker process did not start: {error!r}"
        finally:
            self._child_sock.close()
            if self.unwanted or self.process is None:
                self.end()

    def _send_payload(self, payload: bytes) -> None:
        message = channel._LENGTH.pack(len(payload) + 1) + channel.PAYLOAD
        for part in (message, payload):
            view = memoryview(part)
            while view and not self.unwanted and time.monotonic() < self._deadline:
                if select.select([], [self._sock], [], 0.2)[1]:
                    with contextlib.suppress(BlockingIOError):
                        view = view[
                            self._sock.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :
                        ]

    def poll(self) -> bool:
        """Looks for the ready report. True once the start is decided: `ready`, or `failure` says
        why not."""
        if self.ready or self.failure is not None:
            return True
        try:
            messages = self.line.receive()
        except channel.Closed:
            self.failure = "the worker process died before it was ready"
            return True
        except OSError as error:
            self.failure = f"the line to the worker process failed: {error!r}"
            return True
        if messages:
            kind, body = messages[0]
            if kind == channel.READY:
                self.ready = True
            else:
                self.failure = bytes(body).decode(errors="replace")
        elif time.monotonic() > self._deadline:
            self.failure = (
                f"the worker process was not ready after {READY_SECONDS[self._method]:.0f} s"
            )
        elif self.process is not None and self.dead():
            self.failure = "the worker process died before it was ready"
        return self.ready or self.failure is not None

    # ---- life

    def dead(self) -> bool:
        """Whether the process has ended. Does not wait."""
        try:
            return bool(connection.wait([self.process.sentinel], 0))
        except (OSError, ValueError):
            return True

    # ---- end

    def end(self) -> None:
        """Asks the process to end and returns at once. Any thread, any number of times."""
        self.unwanted = True
        if self._owner_pid != os.getpid():
            return
        with self._lock:
            if self._end_at or (self.process is None and self._starting()):
                return  # the starting thread calls again when it is done
            self._end_at = time.monotonic()
        if self.process is None or self.process.pid is None:
            self._drop()
            return
        with contextlib.suppress(channel.Closed, OSError):
            self.line.send(channel.STOP)
        _hand_to_reaper(self)

    def _starting(self) -> bool:
        return self.failure is None and self._method != "fork" and self._child_sock.fileno() != -1

    def _reap(self, now: float, terminate_at: float) -> bool:
        """One look at an ending process, on the reaper's thread. True when it is gone."""
        process = self.process
        if not self.dead():
            if now > self._end_at + terminate_at + 2:
                process.kill()
            elif now > self._end_at + terminate_at:
                process.terminate()
            return False
        process.join(0.1)
        with contextlib.suppress(ValueError):
            process.close()
        self._drop()
        return True

    def _drop(self) -> None:
        self.line.close()
        self._child_sock.close()
        _held.discard(self)
        self.ended.set()


def start_remote(workers: list[Worker], payload: bytes) -> None:
    """Starts `workers` one after the other on a thread of their own."""
    _hook()
    _held.update(workers)

    def start_all() -> None:
        for worker in workers:
            worker.start_remote(payload)

    threading.Thread(target=start_all, name="gpuutil-loader-start", daemon=True).start()


def _forked(worker: Worker, parts: Parts, seed: int, worker_id: int, total: int) -> None:
    """First code of a forked child: lets go of the trainer's ends, so that each line ends with the
    trainer."""
    child_sock = worker._child_sock
    for other in _inherited:
        if other is not worker:
            other._child_sock.close()
        other._sock.close()
    _inherited.clear()
    worker_main.run(child_sock, parts, seed, worker_id, total)


# ---- the reaper


def _hand_to_reaper(worker: Worker) -> None:
    global _reaper
    with _ending_lock:
        _ending.append(worker)
        if _reaper is None:
            _reaper = threading.Thread(target=_reap_all, name="gpuutil-loader-reaper", daemon=True)
            _reaper.start()


def _reap_all() -> None:
    global _reaper
    while True:
        with _ending_lock:
            todo = list(_ending)
            if not todo:
                _reaper = None
                return
        with contextlib.suppress(OSError, ValueError):
            connection.wait([w.process.sentinel for w in todo], 0.1)
        now = time.monotonic()
        gone = []
        for worker in todo:
            try:
                if worker._reap(now, GRACE_SECONDS):
                    gone.append(worker)
            except Exception:
                worker._drop()
                gone.append(worker)
        with _ending_lock:
            _ending[:] = [worker for worker in _ending if worker not in gone]


def wait_ended(workers: list[Worker], seconds: float) -> bool:
    """Waits until all of `workers` are gone, at most `seconds`. True if they are."""
    end = time.monotonic() + seconds
    return all([w.ended.wait(max(0.0, end - time.monotonic())) for w in workers])


def _at_exit() -> None:
    """Before multiprocessing's own exit code: nothing started here outlives or delays the
    interpreter."""
    workers = list(_held)
    for worker in workers:
        worker.end()
    if not wait_ended(workers, 0.5):
        for worker in workers:
            if not worker.ended.is_set() and worker.process is not None:
                with contextlib.suppress(Exception):
                    worker.process.terminate()
        wait_ended(workers, 1.0)


_inherited: list[Worker] = []


def _forget_after_fork() -> None:
    global _reaper, _ending_lock
    if _forking:
        # Garbage of the trainer must not be finalised in a worker: torch's iterators would try to
        # end *their* workers from here, and complain on stderr.
        gc.freeze()
    _inherited[:] = list(
        _held
    )  # kept: finalising them here would close numbers that mean something else by now
    _held.clear()
    _ending.clear()
    _ending_lock = threading.RLock()
    _reaper = None


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_forget_after_fork)
