"""Step ends: one function among torch's global optimizer post hooks.

torch calls these hooks after every ``Optimizer.step`` of every optimizer in the process, inside the
``Optimizer.step#...`` range. A step that GradScaler skips calls none.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_post_hook


class OptimizerHook:
    """Registered from construction until `remove`."""

    def __init__(self, core: ModuleType) -> None:
        mark = core.optimizer_post_hook()

        def gpuutil_optimizer_post(optimizer: Any, args: Any, kwargs: Any) -> None:
            # A compiled step is traced through here. The C function would break the graph, so a trace sees
            # nothing at all; steps of such a loop are told apart by its fetches.
            if not is_compiling():
                mark(optimizer, args, kwargs)

        self._handle: Any = register_optimizer_step_post_hook(gpuutil_optimizer_post)

    def remove(self) -> None:
        self._handle.remove()
