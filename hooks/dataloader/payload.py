"""What a worker process needs, pickled on the consumer's thread under a budget, and its
fingerprint.

Plain pickle, not multiprocessing's: that one would move the user's tensors to shared memory in
place. Size is the wrong guard alone (a list of a million paths is small and takes seconds), so the
pickle goes into a file object that gives up at a time or a size.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import time
import types
from typing import Any

import torch

from .refusal import NotPossible

_TENSOR_BYTES = 2 << 20
_ARRAY_BYTES = 16 << 20
"""About 20 ms each."""
_CODE = (type, types.ModuleType, types.FunctionType)


class Parts:
    """The arguments of torch's `_worker_loop` that belong to the loader, as plain attributes."""

    __slots__ = (
        "auto_collation",
        "collate",
        "dataset",
        "drop_last",
        "init",
        "kind",
        "persistent",
        "shared_seed",
    )

    def __init__(self, iterator: Any, worker_init_fn: Any) -> None:
        self.kind = iterator._dataset_kind
        self.dataset = iterator._dataset
        self.auto_collation = iterator._auto_collation
        self.collate = iterator._collate_fn
        self.drop_last = iterator._drop_last
        self.init = worker_init_fn
        self.persistent = iterator._persistent_workers
        self.shared_seed = iterator._shared_seed

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, value)


class _Pickler(pickle.Pickler):
    """Refuses large arrays before they are touched.

    A tensor is copied twice before its first byte is written, so the budget could not stop it; a
    memory-mapped array would be read from the disk.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            size = obj.untyped_storage().nbytes() if obj.device.type == "cpu" else _TENSOR_BYTES + 1
            limit = _TENSOR_BYTES
        elif type(obj).__module__.startswith("numpy") and hasattr(obj, "nbytes"):
            size, limit = obj.nbytes, _ARRAY_BYTES
        else:
            return NotImplemented
        if size > limit:
            raise NotPossible(
                "the data set is too large to be pickled while the trainer waits: it has an array "
                f"of {size / 1e6:.0f} MB"
            )
        return NotImplemented


class Budget(io.RawIOBase):
    """A write target that hashes, keeps the bytes if asked to, and gives up when over its
    budget."""

    def __init__(self, seconds: float, size: int, keep: bool) -> None:
        self.hash = hashlib.blake2b(digest_size=16)
        self.chunks: list[bytes] = []
        self._keep = keep
        self._left = size
        self._end = time.monotonic() + seconds
        self._seconds = seconds

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._left -= view.nbytes
        if self._left < 0:
            raise NotPossible("the data set is too large to be pickled while the trainer waits")
        if time.monotonic() > self._end:
            raise NotPossible(f"pickling the data set takes more than {self._seconds * 1e3:.0f} ms")
        self.hash.update(view)
        if self._keep:
            self.chunks.append(bytes(view))
        return view.nbytes


def dump(parts: Parts, seconds: float, size: int, keep: bool) -> tuple[bytes, str]:
    """Pickles `parts`. Returns (bytes, empty unless `keep`; fingerprint).

    Raises:
        NotPossible: over the budget of `seconds` or `size` bytes, or not picklable, with the
            reason.
    """
    target = Budget(seconds, size, keep)
    try:
        _Pickler(target, pickle.HIGHEST_PROTOCOL).dump(parts)
    except NotPossible:
        raise
    except Exception as error:
        raise NotPossible(
            f"the data set, collate_fn or worker_init_fn does not pickle: {error}"
        ) from None
    return b"".join(target.chunks), target.hash.hexdigest()


def fingerprint(parts: Parts, seconds: float, size: int) -> str | None:
    """A hash that is equal only if the pickles are equal; None when that cannot be had within the
    budget."""
    try:
        return dump(parts, seconds, size, keep=False)[1]
    except NotPossible:
        return None


def has_epoch_state(dataset: Any) -> bool:
    """Whether the data set, or one that it wraps, is told the epoch: its workers have to be fresh
    in each epoch."""
    todo, seen = [(dataset, 0)], set()
    while todo:
        item, level = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        names = vars(item) if hasattr(item, "__dict__") else {}
        if hasattr(type(item), "set_epoch") or {"set_epoch", "epoch", "_epoch"} & names.keys():
            return True
        if level < 3:
            for value in names.values():
                children = value[:16] if isinstance(value, (list, tuple)) else [value]
                todo += [
                    (c, level + 1)
                    for c in children
                    if hasattr(c, "__dict__") and not isinstance(c, _CODE)
                ]
    return False
