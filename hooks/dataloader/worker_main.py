"""The body of a worker process that gpuutil added: torch's own worker loop on a private line.

Runs in the child only. Nothing here prints; what goes wrong before the first task is reported to
the trainer.
"""

from __future__ import annotations

import inspect
import pickle
import signal
import socket
from typing import Any

from torch.utils.data._utils import worker as torch_worker

from .channel import ChildEnd
from .payload import Parts


class _Init:
    """The user's worker_init_fn, followed by the report that the worker is ready. Called by torch's
    loop."""

    def __init__(self, user: Any, line: ChildEnd) -> None:
        self._user = user
        self._line = line

    def __call__(self, worker_id: int) -> None:
        try:
            if self._user is not None:
                self._user(worker_id)
        except BaseException as error:
            self._line.failed(f"worker_init_fn raised {error!r}")
            raise
        self._line.ready()


def run(sock: socket.socket, parts: Parts | None, seed: int, worker_id: int, total: int) -> None:
    """Serves batches until told to stop, or until the trainer is gone.

    Args:
        sock: the child's end of the line.
        parts: what a forked child inherits; None if it comes as the first message.
        seed: base seed; torch adds `worker_id`.
        worker_id: number that `get_worker_info()` tells.
        total: number of workers that `get_worker_info()` tells.
    """
    # Ctrl-C goes to every process of the terminal; the trainer alone decides what it means. (Not
    # SIG_IGN, which programs started by the data set would inherit.)
    signal.signal(signal.SIGINT, lambda *_: None)
    line = ChildEnd(sock)
    if parts is None:
        try:
            payload = line.payload()
            if payload is None:
                return
            parts = pickle.loads(payload)
            del payload
        except BaseException as error:
            line.failed(f"the data set cannot be unpickled in a worker process: {error!r}")
            return
    loop = torch_worker._worker_loop
    dataset = parts.dataset
    holder = [dataset] if "dataset_holder" in inspect.signature(loop).parameters else dataset
    parts.dataset = None
    del dataset
    loop(
        parts.kind, holder, line, line, line, parts.auto_collation, parts.collate, parts.drop_last,
        seed, _Init(parts.init, line), worker_id, total, parts.persistent, parts.shared_seed,
    )  # fmt: skip
