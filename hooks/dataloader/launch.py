"""Starting a process by fork server or spawn without the side effects that multiprocessing has by
default.

Called on a starting thread, never on the consumer's. Two things are changed for the time of one
start, under a lock and for the starting thread only: a child whose payload does not need the main
script does not import it, and the process's default start method stays open for the user's
`set_start_method`.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing import context as mp_context
from multiprocessing import forkserver, spawn
from typing import Any

_lock = threading.Lock()
_local = threading.local()


def launch(process: Any, method: str, import_main: bool) -> None:
    """`process.start()` with the main script imported in the child only if `import_main`."""
    with _lock:
        real = spawn.get_preparation_data
        preload = getattr(forkserver._forkserver, "_preload_modules", None)
        _local.active, _local.import_main = True, import_main
        spawn.get_preparation_data = _filtered(real)
        try:
            if method == "forkserver" and preload == ["__main__"]:
                # Only read if the server is not running yet. Without it each child imports torch
                # for seconds.
                forkserver.set_forkserver_preload(["torch.utils.data"])
            process.start()
        finally:
            spawn.get_preparation_data = real
            _local.active = False
            if method == "forkserver" and preload is not None:
                forkserver._forkserver._preload_modules = preload


def _filtered(real: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    def get_preparation_data(name: str) -> dict[str, Any]:
        if not getattr(_local, "active", False):
            return real(name)
        fixed = multiprocessing.get_start_method(allow_none=True)
        data = real(name)
        if fixed is None:
            mp_context._default_context._actual_context = None
        if not _local.import_main:
            data = {key: value for key, value in data.items() if not key.startswith("init_main")}
        return data

    return get_preparation_data
