"""main_threads: torch's intra-op threads of the training thread."""

from __future__ import annotations

from typing import Any

import torch


class MainThreads:
    """`value` is the number of threads. torch keeps it per calling thread, so it is set on the training thread."""

    id = "main_threads"

    def apply(self, subject: Any, value: int) -> None:
        torch.set_num_threads(value)

    def in_effect(self, subject: Any) -> bool:
        return True

    def failure(self, subject: Any) -> str | None:
        return None
