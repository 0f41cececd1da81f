"""Step ends: one C function among torch's global optimizer post hooks.

torch calls these hooks after every ``Optimizer.step`` of every optimizer in the process, inside the
``Optimizer.step#...`` range. A step that GradScaler skips calls none.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook


class OptimizerHook:
    """Registered from construction until `remove`."""

    def __init__(self, core: ModuleType) -> None:
        self._handle: Any = register_optimizer_step_post_hook(core.optimizer_post_hook())

    def remove(self) -> None:
        self._handle.remove()
