"""What torch's worker loop does with the base seed at its start, packed so that a running worker does it.

A worker unpickles its tasks, and a pickle may call functions: a `Task` arrives as the plain task, and
on the way the seeding has been called. Only names of torch, numpy and the standard library are in
it: a worker need not be able to import gpuutil.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

from torch.utils.data import _utils, get_worker_info


class _Call:
    """Unpickles to what `function(*arguments)` returns there."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> Any:
        return self._reduced


def _call_in(module: str, name: str, *arguments: Any) -> _Call:
    """`module.name(*arguments)`, looked up there: torch and numpy do not give these functions by
    value."""
    return _Call(operator.methodcaller(name, *arguments), _Call(importlib.import_module, module))


class Task(tuple):
    """(number, indices) whose unpickling makes `calls` first. A tuple, for whoever does not pickle
    it."""

    calls: tuple[_Call, ...] = ()

    def __reduce__(self) -> Any:
        return operator.getitem, ([*self.calls, tuple(self)], -1)


def seeding(base_seed: int, worker: int) -> tuple[_Call, ...]:
    """The calls by which worker number `worker` is seeded as a fresh one would be."""
    seed = base_seed + worker
    calls = [_call_in("random", "seed", seed), _call_in("torch", "manual_seed", seed)]
    if _utils.HAS_NUMPY:
        state = _utils.worker._generate_state(base_seed, worker)
        calls.append(_call_in("numpy.random", "seed", state))
    # The record is frozen.
    calls.append(_Call(object.__setattr__, _Call(get_worker_info), "seed", seed))
    return tuple(calls)
