"""Class patches that see every fetch and every epoch of every DataLoader in the process.

``_BaseDataLoaderIter.__next__`` gets a C stand-in (a fetch is the hot path); ``DataLoader.__iter__`` a Python one
(once an epoch), which hands back torch's own iterator object, so that its type, its ``len`` and its workers are what
the user's code expects. ``_MultiProcessingDataLoaderIter._shutdown_workers`` gets one that asks first whether the
workers are to be kept: there, because it is where every pass ends, whatever class of ours the iterator has meanwhile,
and because nothing has to be written to the loader or the iterator that user code could read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

from ..patching import PatchStack
from .keep import hand_over


def patch_dataloader(
    core: ModuleType,
    stack: PatchStack,
    loader_id: Callable[[DataLoader], int],
    bind: Callable[[DataLoader, Any], None],
    reopen: Callable[[DataLoader], Any],
) -> None:
    """Puts all patches on `stack`.

    Args:
        core: the engine's module.
        stack: takes the patches back at detach.
        loader_id: the loader's id; never raises.
        bind: called with a loader and the iterator that it just made, before the first fetch; never raises.
        reopen: makes an iterator with the workers of the last pass, or returns None where torch has to start workers.
            Raises what the user's own sampler raises in it.
    """
    original = DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self: DataLoader) -> Any:
        source = loader_id(self)
        core.iter_begin(source)
        try:
            iterator = reopen(self)
            if iterator is None:
                iterator = original(self)
        finally:
            core.iter_end(source)
        bind(self, iterator)
        return iterator

    stack.replace(DataLoader, "__iter__", __iter__)
    stack.replace(_BaseDataLoaderIter, "__next__", core.new_next(_BaseDataLoaderIter.__next__))
    patch_shutdown(stack)


def patch_shutdown(stack: PatchStack) -> None:
    """Workers of a pass that ended well may be kept for the next one (`keep.py`)."""
    original = _MultiProcessingDataLoaderIter._shutdown_workers

    @functools.wraps(original)
    def _shutdown_workers(self: _MultiProcessingDataLoaderIter) -> None:
        if not hand_over(self):
            original(self)

    stack.replace(_MultiProcessingDataLoaderIter, "_shutdown_workers", _shutdown_workers)
