"""Class patches that see every fetch and every epoch of every DataLoader in the process.

``_BaseDataLoaderIter.__next__`` gets a C stand-in (a fetch is the hot path); ``DataLoader.__iter__`` a Python one
(once an epoch), which hands back torch's own iterator object, so that its type, its ``len`` and its workers are what
the user's code expects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ..patching import PatchStack


def patch_dataloader(
    core: ModuleType,
    stack: PatchStack,
    loader_id: Callable[[DataLoader], int],
    bind: Callable[[DataLoader, Any], None],
) -> None:
    """Puts both patches on `stack`.

    Args:
        core: the engine's module.
        stack: takes the patches back at detach.
        loader_id: the loader's id; never raises.
        bind: called with a loader and the iterator that it just made, before the first fetch; never raises.
    """
    original = DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self: DataLoader) -> Any:
        source = loader_id(self)
        core.iter_begin(source)
        try:
            iterator = original(self)
        finally:
            core.iter_end(source)
        bind(self, iterator)
        return iterator

    stack.replace(DataLoader, "__iter__", __iter__)
    stack.replace(_BaseDataLoaderIter, "__next__", core.new_next(_BaseDataLoaderIter.__next__))
