"""The one answer of the shortcuts for a batch that they do not clearly cover."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Unusual(Exception):
    """torch's own code is to make this batch. Nothing was touched. The text says why."""


def _none() -> int:
    return 0


_function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", _none)
_dispatch_modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", _none)


def refuse_modes() -> None:
    """A mode (a default device, fake tensors, a logger of calls) sees each of torch's own calls.

    Raises:
        Unusual: one is active on this thread.
    """
    if _function_modes() or _dispatch_modes():
        raise Unusual("a mode of torch's is active, which sees every call")
