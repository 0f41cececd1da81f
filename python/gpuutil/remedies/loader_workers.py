"""loader_workers: worker processes added to, or taken from, a running DataLoader."""

from __future__ import annotations

from typing import Any

from ..hooks.dataloader.live import NotPossible as _Refused
from ..loaders import WatchedLoader
from .base import NotPossible


class LoaderWorkers:
    """`value` is the number of active workers, 0 included. Order and number of samples stay exactly the same."""

    id = "loader_workers"

    def offer(self, subject: WatchedLoader, loader: Any) -> None:
        """Nothing: how many is the controller's to find."""

    def apply(self, subject: WatchedLoader, value: int) -> None:
        live = _live(subject)
        try:
            live.request(workers=value)
        except _Refused as error:
            raise NotPossible(str(error)) from None

    def in_effect(self, subject: WatchedLoader) -> bool:
        return _live(subject).state.effective

    def failure(self, subject: WatchedLoader) -> str | None:
        state = _live(subject).state
        if state.fallback_reason is not None:
            return state.fallback_reason
        if not state.effective and not state.workers_starting and state.failures:
            return state.failures[-1]
        return None

    def restore(self) -> None:
        """Nothing: a loader is given back by its own live handle."""


def _live(subject: WatchedLoader):
    if subject.live is None or subject.refusal is not None:
        raise NotPossible(subject.refusal or "this loader is only observed")
    return subject.live
