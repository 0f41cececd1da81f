"""The conveyor's way to real worker processes, over their private lines."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from . import channel
from .conveyor import Doubt, Key, WorkerLost
from .worker import Worker


class ProcessTransport:
    """Sends and receives without ever waiting on anything but readiness, for at most a second."""

    def send(self, worker: Worker, key: Key, indices: Any) -> None:
        body = pickle.dumps((key, indices), pickle.HIGHEST_PROTOCOL)
        try:
            worker.line.send(channel.TASK, body)
        except channel.Closed as error:
            raise WorkerLost(f"the line to worker process {worker.pid} broke: {error}") from None

    def receive(
        self, owner: Worker | None, workers: Iterable[Worker], timeout: float
    ) -> list[tuple[Worker, Key, Any]]:
        """See `conveyor.Transport`."""
        readers: dict[Any, Worker] = {w.line: w for w in workers}
        waiting: list[Any] = list(readers)
        if owner is not None:
            waiting.append(owner.process.sentinel)
        for worker in readers.values():
            if worker.line.backlog:
                timeout = min(timeout, 0.02)
                try:
                    worker.line.flush()
                except channel.Closed as error:
                    raise WorkerLost(
                        f"the line to worker process {worker.pid} broke: {error}"
                    ) from None
        if not waiting:
            return []
        events = []
        ready = connection.wait(waiting, timeout)
        for item in ready:
            worker = readers.get(item)
            if worker is not None:
                events += self._read(worker)
        if not events and owner is not None and (ready or timeout) and owner.dead():
            # Asked again after the death: what a dead process had sent is all there now.
            events = self._read(owner)
            if not events:
                raise WorkerLost(_death(owner))
        return events

    def patient(self, worker: Worker) -> bool:
        return False

    def stop(self, worker: Worker) -> None:
        worker.end()

    def forget(self, workers: Iterable[Worker]) -> None:
        """Tells workers to drop tasks that nobody waits for any more. Best effort."""
        for worker in workers:
            try:
                worker.line.send(channel.FORGET)
            except (channel.Closed, OSError):
                continue  # dead; whoever uses it next will notice

    def _read(self, worker: Worker) -> list[tuple[Worker, Key, Any]]:
        try:
            messages = worker.line.receive()
        except channel.Closed:
            raise WorkerLost(_death(worker)) from None
        events = []
        for kind, body in messages:
            if kind == channel.DONE:
                try:
                    key, data = ForkingPickler.loads(body)
                except Exception as error:
                    # Tensors are fetched from the worker while they are unpickled: it may have died
                    # meanwhile.
                    if connection.wait(
                        [worker.process.sentinel],
                        0.1 if isinstance(error, (OSError, EOFError)) else 0,
                    ):
                        raise WorkerLost(_death(worker)) from error
                    raise WorkerLost(f"a batch cannot be unpickled: {error!r}") from error
                events.append((worker, key, data))
            elif kind == channel.UNSENDABLE:
                raise WorkerLost(pickle.loads(body)[1])
            else:
                raise Doubt(f"unexpected message {kind!r} from worker process {worker.pid}")
        return events


def _death(worker: Worker) -> str:
    process = worker.process
    process.join(0.2)
    code = process.exitcode
    how = (
        "ended"
        if code is None
        else f"was killed by signal {-code}"
        if code < 0
        else f"exited with code {code}"
    )
    return f"worker process {worker.pid} {how}"
