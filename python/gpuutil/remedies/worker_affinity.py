"""worker_affinity: workers that were pinned to fewer CPUs than the trainer may use get the trainer's."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

from .. import inherited
from .base import NotPossible, Offer

_ROUNDS = 3


class WorkerAffinity:
    """`value` is 0 (masks as they came) or 1 (every thread of every worker may run where the trainer may).

    Never wider than the mask with which gpuutil was imported. In force, workers that come later get it too. Where
    items are made changes nothing of what they are.
    """

    id = "worker_affinity"

    def __init__(self) -> None:
        self._widened: dict[int, _Widened] = {}

    def offer(self, subject: Any, loader: Any) -> Offer | None:
        """Also lets workers that came since the last look have what is in force."""
        pids = subject.worker_pids()
        widened = self._widened.get(subject.id)
        if widened is not None:
            widened.take_in(pids)
            return Offer(self.id, 1, 1)
        masks = [mask for mask in map(_mask, pids) if mask]
        if all(mask >= inherited.CPUS for mask in masks):
            return None
        cpus = trainer_cpus()
        if not cpus or all(mask >= cpus for mask in masks):
            return None
        return Offer(self.id, 0, 1)

    def apply(self, subject: Any, value: int) -> None:
        if value == 0:
            self._give_back(subject.id)
            subject.restless = False
            return
        if subject.id in self._widened:
            return
        cpus = trainer_cpus()
        if not cpus:
            raise NotPossible("the CPUs of the trainer cannot be read")
        widened = _Widened(cpus)
        widened.take_in(subject.worker_pids())
        if widened.error is not None:
            widened.undo()
            raise NotPossible(f"the workers' masks cannot be set: {widened.error}")
        self._widened[subject.id] = widened
        subject.restless = True  # workers of the next pass pin themselves after they were started

    def in_effect(self, subject: Any) -> bool:
        return True

    def failure(self, subject: Any) -> str | None:
        return None

    def restore(self) -> None:
        for identity in list(self._widened):
            self._give_back(identity)

    def _give_back(self, identity: int) -> None:
        widened = self._widened.pop(identity, None)
        if widened is not None:
            widened.undo()


class _Widened:
    """The workers of one loader whose masks were set, with the masks that each of their threads had."""

    def __init__(self, cpus: frozenset[int]) -> None:
        self.error: OSError | None = None
        self._cpus = cpus
        self._before: dict[tuple[int, str], dict[int, set[int]]] = {}

    def take_in(self, pids: list[int]) -> None:
        """Widens what lacks a CPU of the trainer's. Never raises; `error` says what the system refused."""
        living = set()
        for pid in pids:
            born = _born(pid)
            if born is None:
                continue
            living.add((pid, born))
            before = self._before.setdefault((pid, born), {})
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                if not before:
                    before.update((tid, mask) for tid in _threads(pid) if (mask := _mask(tid)))
                for _ in range(_ROUNDS):  # a thread may be made meanwhile, with its maker's mask
                    if not self._widen(pid, before):
                        break
        self._before = {key: masks for key, masks in self._before.items() if key in living}

    def _widen(self, pid: int, before: dict[int, set[int]]) -> bool:
        moved = False
        for tid in _threads(pid):
            try:
                mask = os.sched_getaffinity(tid)
                if mask >= self._cpus:
                    continue
                os.sched_setaffinity(tid, self._cpus)
                before.setdefault(tid, mask)
                moved = True
            except ProcessLookupError:
                continue
            except OSError as error:
                self.error = self.error or error
        return moved

    def undo(self) -> None:
        """Each thread's own mask again; one made since gets that of its process's main thread."""
        for (pid, born), before in self._before.items():
            if _born(pid) != born or pid not in before:
                continue
            with contextlib.suppress(OSError):
                for tid in _threads(pid):
                    if _mask(tid) == self._cpus:  # else somebody set another one since
                        with contextlib.suppress(OSError):
                            os.sched_setaffinity(tid, before.get(tid, before[pid]))
        self._before = {}


def trainer_cpus() -> frozenset[int]:
    """CPUs on which any thread of this process may run, gpuutil's own left out, and never more than it came with.

    Not the main thread alone: OpenMP's binding ties that one to a single CPU while its team has all of them.
    """
    ours = {thread.native_id for thread in threading.enumerate() if thread.name.startswith("gpuutil")}
    cpus: set[int] = set()
    for tid in _threads(os.getpid()):
        if tid in ours or _name(tid).startswith("gpuutil"):
            continue
        cpus |= _mask(tid)
    return inherited.CPUS & cpus


def _threads(pid: int) -> list[int]:
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def _mask(tid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return os.sched_getaffinity(tid)
    return set()


def _name(tid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/self/task/{tid}/comm") as file:
        return file.read().strip()
    return ""


def _born(pid: int) -> str | None:
    """The start time, which tells a process from a later one with its id."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()
    return None
