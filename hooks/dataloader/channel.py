"""One private, two-way line of framed messages between the trainer and one worker process.

A socket pair instead of multiprocessing's queues: no lock or semaphore that a killed worker could
hold, no feeder thread in the trainer, no name that a slow child might find removed, and a dead
trainer is an end of file at once. The trainer's end never blocks; one thread reads it and one (the
same, or the starter while the payload is on its way) writes it. The child's ends have the few
methods that torch's `_worker_loop` calls on its queues and its event.
"""

from __future__ import annotations

import pickle
import queue
import select
import socket
import struct
import threading
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import Any

from torch._utils import ExceptionWrapper

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20

TASK, STOP, FORGET, PAYLOAD = b"T", b"S", b"G", b"P"
"""To the worker: a task; end; drop the tasks not begun (their iterator is gone); what the worker
needs to start."""
READY, FAILED, DONE, UNSENDABLE = b"R", b"F", b"D", b"X"
"""To the trainer: ready; not able to start, why; a result; a result that does not pickle, why."""


class Closed(Exception):
    """The other end is gone."""


class Channel:
    """The trainer's end. No call blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._out: deque[memoryview] = deque()
        self._head = bytearray(_LENGTH.size)
        self._frame: bytearray | None = None
        self._have = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def backlog(self) -> bool:
        """Whether something waits for room in the socket; `flush` again later."""
        return bool(self._out)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Queues a message and sends what fits. Raises Closed."""
        self._out.append(memoryview(_LENGTH.pack(len(body) + 1) + kind + body))
        self.flush()

    def flush(self) -> None:
        while self._out:
            try:
                sent = self._sock.send(self._out[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError as error:
                raise Closed(str(error)) from None
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]

    def receive(self) -> list[tuple[bytes, memoryview]]:
        """Every message that is there completely. Raises Closed once nothing more can come."""
        messages = []
        while True:
            target = self._head if self._frame is None else self._frame
            view = memoryview(target)[self._have : self._have + _CHUNK]
            try:
                got = self._sock.recv_into(view, len(view), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return messages
            except OSError:
                got = 0
            if got == 0:
                if messages:
                    return messages
                raise Closed
            self._have += got
            if self._have < len(target):
                continue
            self._have = 0
            if self._frame is None:
                self._frame = bytearray(_LENGTH.unpack(self._head)[0])
            else:
                body, self._frame = memoryview(self._frame), None
                messages.append((bytes(body[:1]), body[1:]))

    def close(self) -> None:
        self._sock.close()


class _Stream:
    """Blocking reads and writes at the child's end, by any number of threads for writes and one for
    reads."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def write(self, kind: bytes, body: bytes | memoryview = b"") -> None:
        with self._lock:
            self._sock.sendall(_LENGTH.pack(len(body) + 1) + kind)
            self._sock.sendall(body)

    def readable(self, timeout: float) -> bool:
        return bool(select.select([self._sock], [], [], timeout)[0])

    def read(self) -> tuple[bytes, memoryview] | None:
        """One message, or None at the end of file."""
        head = self._exactly(_LENGTH.size)
        body = head and self._exactly(_LENGTH.unpack(head)[0])
        return (bytes(body[:1]), body[1:]) if body else None

    def _exactly(self, count: int) -> memoryview | None:
        data = memoryview(bytearray(count))
        have = 0
        while have < count:
            try:
                got = self._sock.recv_into(data[have:])
            except OSError:
                return None
            if got == 0:
                return None
            have += got
        return data


class ChildEnd:
    """The worker's side of the line, as torch's `_worker_loop` wants it: index queue, result queue
    and done event.

    A thread sends the results, as in multiprocessing's queues: the next batch is begun while a
    large one waits for the trainer to read it.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._stream = _Stream(sock)
        self._tasks: deque[memoryview] = deque()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stopped = False
        self._sender = threading.Thread(target=self._send_results, daemon=True)
        self._sender.start()

    # -- start-up

    def payload(self) -> memoryview | None:
        """Waits for what the trainer sends first; None if it never will."""
        message = self._stream.read()
        return message[1] if message and message[0] == PAYLOAD else None

    def ready(self) -> None:
        self._stream.write(READY)

    def failed(self, reason: str) -> None:
        self._stream.write(FAILED, reason.encode(errors="replace"))

    # -- index queue

    def get(self, timeout: float) -> Any:
        """The next task, or None when it is time to end."""
        if not self._tasks and not self._stopped and not self._stream.readable(timeout):
            raise queue.Empty
        while not self._stopped and self._stream.readable(0):
            message = self._stream.read()
            if message is None or message[0] == STOP:
                self._stopped = True
            elif message[0] == FORGET:
                self._tasks.clear()
            elif message[0] == TASK:
                self._tasks.append(message[1])
        if self._stopped:
            return None
        if not self._tasks:
            raise queue.Empty
        return pickle.loads(self._tasks.popleft())

    # -- done event

    def is_set(self) -> bool:
        return self._stopped

    # -- result queue

    def put(self, item: tuple[Any, Any]) -> None:
        self._results.put(item)

    def cancel_join_thread(self) -> None:
        """Nothing waits for the sending thread."""

    def close(self) -> None:
        """The process ends; the socket ends with it."""

    @staticmethod
    def _instead(item: tuple[Any, Any], error: Exception) -> tuple[bytes, bytes]:
        """(message, kind) for a result that does not pickle."""
        key, data = item
        if isinstance(data, ExceptionWrapper):
            data.exc_type = (
                RuntimeError  # the user's class is local; the text still tells what happened
            )
            return bytes(ForkingPickler.dumps((key, data))), DONE
        return pickle.dumps((key, f"a batch does not pickle: {error!r}")), UNSENDABLE

    def _send_results(self) -> None:
        while True:
            item = self._results.get()
            try:
                body, kind = ForkingPickler.dumps(item), DONE
            except Exception as error:
                body, kind = self._instead(item, error)
            del item
            try:
                self._stream.write(kind, body)
            except OSError:
                return
            del body
