"""What can be read of a running iterator of torch's without touching it. Any thread; never raises.

Relied on, and unknown where it is not there: `_workers` and `_task_info` of the multi-process iterator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from .engine import ATTRIBUTE

_MOST_NODES = 2000


def worker_pids(iterator: Any) -> list[int]:
    """The processes that torch itself started for this iterator and that still belong to it."""
    if iterator is None or getattr(iterator, "_shutdown", False):
        return []
    pids = [getattr(worker, "pid", None) for worker in list(getattr(iterator, "_workers", ()))]
    return [pid for pid in pids if pid]


def batch_bytes(iterator: Any) -> int | None:
    """Bytes of the tensors of the largest batch that has arrived and is not delivered yet; None where there is none,
    or where it holds something whose size cannot be told."""
    engine = getattr(iterator, "__dict__", {}).get(ATTRIBUTE)
    belt = getattr(engine, "belt", None)
    with contextlib.suppress(Exception):  # the consumer moves on meanwhile; tensors of strange kinds
        waiting = list(belt.arrived.values()) if belt is not None else []
        for entry in list(getattr(iterator, "_task_info", {}).values()):
            if len(entry) == 2:
                waiting.append(entry[1])
        sizes = [size for size in map(tensor_bytes, waiting) if size is not None]
        return max(sizes, default=None)
    return None


def tensor_bytes(batch: Any) -> int | None:
    """Bytes of the storages that a batch's CPU tensors lie in, each once; None if it holds anything unknown.

    Only tensors go through shared memory: arrays and strings are sent as they are.
    """
    storages: dict[int, int] = {}
    waiting, seen = [batch], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > _MOST_NODES:
            return None
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.device.type != "cpu":
                return None
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif not _plain(value):
            return None
    return sum(storages.values())


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes, bool, int, float, complex)) or _is_array(value)


def _is_array(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and (kind.__name__ == "ndarray" or hasattr(value, "dtype"))


def pids_of(*groups: Iterable[int]) -> list[int]:
    """All of them, each once, in order."""
    return list(dict.fromkeys(pid for group in groups for pid in group))
