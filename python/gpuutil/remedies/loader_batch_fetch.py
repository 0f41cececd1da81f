"""loader_batch_fetch: whole batches by one indexing, or one stack a field, in a loader without workers."""

from __future__ import annotations

from typing import Any

from ..hooks.dataloader.batch_fetch import BY_ROWS, OFF
from ..hooks.dataloader.refusal import NotPossible as _Refused
from ..loaders import WatchedLoader
from .base import NotPossible, Offer

_WORKERS = "batches are made in worker processes"


class LoaderBatchFetch:
    """`value` is 0 for torch's own way, 1 for one indexing a batch, 2 for one stack a field.

    Same batches bit for bit, in the same order, with the same exceptions; no random number is drawn.
    """

    id = "loader_batch_fetch"

    def offer(self, subject: WatchedLoader, loader: Any) -> Offer | None:
        batch = subject.batch
        if batch.value != OFF:
            return Offer(self.id, batch.value, batch.value)
        offered = batch.offered
        if offered is not None:
            refusal = _WORKERS if _served_by_workers(subject) else ""
            return Offer(self.id, OFF, offered, refusal=refusal)
        if batch.refusal is not None:
            return Offer(self.id, OFF, BY_ROWS, refusal=batch.refusal)
        return None

    def apply(self, subject: WatchedLoader, value: int) -> None:
        if value != OFF and _served_by_workers(subject):
            raise NotPossible(_WORKERS)
        try:
            subject.batch.request(value)
        except _Refused as error:
            raise NotPossible(str(error)) from None

    def in_effect(self, subject: WatchedLoader) -> bool:
        # Workers that came meanwhile fetch in their own way: there is nothing left to wait for.
        return subject.batch.settled or _served_by_workers(subject)

    def failure(self, subject: WatchedLoader) -> str | None:
        return subject.batch.failure

    def restore(self) -> None:
        """Nothing: the loader's own handle takes it off."""


def _served_by_workers(subject: WatchedLoader) -> bool:
    return subject.live is not None and subject.live.wanted_workers > 0
