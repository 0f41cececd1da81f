"""main_threads: torch's intra-op threads of the training thread."""

from __future__ import annotations

from typing import Any

import torch

from .base import NotPossible


class MainThreads:
    """`value` is the number of threads. torch keeps it per calling thread, so it is set on the training thread."""

    id = "main_threads"

    def __init__(self) -> None:
        self._user: int | None = None
        self._ours: int | None = None

    def offer(self, subject: Any, loader: Any) -> None:
        """Nothing: how many is the controller's to find."""

    def apply(self, subject: Any, value: int) -> None:
        now = torch.get_num_threads()
        if self._ours is not None and now != self._ours:
            self._user = self._ours = None
            raise NotPossible(f"the script itself set {now} threads meanwhile")
        if self._user is None:
            self._user = now
        torch.set_num_threads(value)
        self._ours = value

    def in_effect(self, subject: Any) -> bool:
        return True

    def failure(self, subject: Any) -> str | None:
        return None

    def restore(self) -> None:
        """The user's own number again, unless they set another one since. On the training thread."""
        if self._user is not None and torch.get_num_threads() == self._ours:
            torch.set_num_threads(self._user)
        self._user = self._ours = None
