"""What kind of process this is: facts about it that decide what may be done in it."""

from __future__ import annotations

import os
import platform
import sys
import threading
from typing import Any


def unsupported() -> str | None:
    """Why gpuutil can do nothing in this interpreter, in one line, or None."""
    if sys.platform != "linux":
        return f"gpuutil works on Linux only for now (this is {sys.platform}); nothing is watched"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "gpuutil does not support free-threaded Python yet; nothing is watched"
    return None


def inert_child() -> str | None:
    """Why `attach` must do nothing in this process: it is somebody's worker, not the trainer.

    A child made by spawn or forkserver imports the main script again and so runs `attach` at its top level. A child
    that trains (one of several ranks) calls `attach` from a function instead.
    """
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        return "this is a DataLoader worker"
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__":
            return "this child process is only importing the main script"
        frame = frame.f_back
    return None


def ranks() -> tuple[int, int]:
    """(rank, number of ranks), from torch.distributed where it is up, else from the launcher's variables."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 0, 1


def asks_for_determinism() -> str | None:
    """What in this run asks for bitwise repeatability, or None. Looks at switches that torch keeps, no more."""
    import torch

    if torch.are_deterministic_algorithms_enabled():
        return "torch.use_deterministic_algorithms"
    if torch.backends.cudnn.deterministic:
        return "torch.backends.cudnn.deterministic"
    return None


def facts() -> dict[str, Any]:
    """The white list that reports carry: versions and counts, never variables' values, never arguments."""
    import torch

    rank, world = ranks()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "logical_cpus": os.cpu_count(),
        "rank": rank,
        "ranks": world,
        "main_thread": threading.current_thread() is threading.main_thread(),
    }
