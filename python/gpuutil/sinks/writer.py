"""A thread that carries reports to slow places, so that the training thread never waits for a disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from .log import logger


class Writer:
    """Runs small jobs in order on a daemon thread. A job that raises is logged once and the others go on."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="gpuutil-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """Queues a job; returns at once."""
        self._jobs.put(job)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Finishes what is queued, for at most `timeout_seconds`."""
        self._jobs.put(None)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception as error:
                if not self._warned:
                    self._warned = True
                    logger.warning("a report could not be written: %r", error)
