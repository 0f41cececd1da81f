"""The conveyor's way to the stock workers of a loader (numbers) and to added ones (`Worker`), side
by side."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from multiprocessing import connection
from typing import Any

from torch.utils.data._utils import MP_STATUS_CHECK_INTERVAL

from .conveyor import Key
from .transport import ProcessTransport


class StockTransport:
    """Everything of the stock workers goes through torch's own methods of the iterator.

    `iterator` is set for the time of one call only: no reference cycle. `owners` is the conveyor's
    table: an answer of a stock worker does not say whose it is. `error` is an exception that
    torch's methods raised: the user's. `taken` holds what came out of torch's queue in the last
    call: nobody would make it again if a signal handler raises before the conveyor has it.
    """

    def __init__(self, private: ProcessTransport) -> None:
        self.iterator: Any = None
        self.generation = 0
        self.owners: dict[int, Hashable] = {}
        self.error: BaseException | None = None
        self.taken: dict[int, Any] = {}
        self._private = private
        self._checked = 0.0

    def send(self, worker: Hashable, key: Key, indices: Any) -> None:
        if isinstance(worker, int):
            self.iterator._index_queues[worker].put((key[1], indices))
        else:
            self._private.send(worker, key, indices)

    def receive(
        self, owner: Hashable | None, workers: Iterable[Hashable], timeout: float
    ) -> list[tuple[Hashable, Key, Any]]:
        """See `conveyor.Transport`. With `in_order` only the owner of the next batch is waited
        for."""
        self.taken = {}
        workers = list(workers)
        private = [w for w in workers if not isinstance(w, int)]
        stock = len(private) < len(workers)
        events: list[Any] = []
        if stock:
            events += self._stock_ready()
        if owner is None or events:
            return events + self._private.receive(None, private, 0)
        if not self.iterator._in_order:
            return self._whoever_comes(private, stock, timeout)
        if not isinstance(owner, int):
            return self._private.receive(owner, private, timeout)
        return [self._event(self._torch(self.iterator._get_data))]

    def patient(self, worker: Hashable) -> bool:
        return isinstance(worker, int)

    def stop(self, worker: Hashable) -> None:
        if not isinstance(worker, int):
            self._private.stop(worker)

    def _torch(self, method: Any, *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except BaseException as error:
            self.error = error
            raise

    def _event(self, item: tuple[int, Any]) -> tuple[Hashable, Key, Any]:
        seq, data = item
        self.taken[seq] = data
        return self.owners.get(seq, -1), (self.generation, seq), data

    def _stock_ready(self) -> list[Any]:
        events = []
        while not self.iterator._data_queue.empty():
            there, item = self._torch(self.iterator._try_get_data)
            if not there:
                break
            events.append(self._event(item))
        return events

    def _whoever_comes(self, private: list[Any], stock: bool, timeout: float) -> list[Any]:
        """in_order=False: any answer will do. (Refused beside a pin thread: its queue cannot be
        waited for.)"""
        waiting = [w.line for w in private] + [w.process.sentinel for w in private]
        if stock:
            waiting.append(self.iterator._data_queue._reader)
        ready = connection.wait(waiting, timeout)
        if ready:
            events = self._stock_ready() if stock else []
            events += self._private.receive(None, private, 0)
            for worker in [] if events else private:
                events += self._private.receive(
                    worker, [worker], 0.01
                )  # the sentinel: raises if it is dead
            return events
        now = time.monotonic()
        if stock and now - self._checked > MP_STATUS_CHECK_INTERVAL:
            self._checked = now
            there, item = self._torch(self.iterator._try_get_data, 0.01)  # looks after dead workers
            return [self._event(item)] if there else []
        return []
