"""loader_prefetch: how many batches each worker of a running DataLoader prepares ahead."""

from __future__ import annotations

from ..hooks.dataloader.live import NotPossible as _Refused
from ..loaders import WatchedLoader
from .base import NotPossible
from .loader_workers import LoaderWorkers, _live


class LoaderPrefetch(LoaderWorkers):
    """`value` is batches per worker. It takes effect at once upward, and by decay downward."""

    id = "loader_prefetch"

    def apply(self, subject: WatchedLoader, value: int) -> None:
        if value < 1:
            return  # without workers there is no depth to set
        try:
            _live(subject).request(prefetch=value)
        except _Refused as error:
            raise NotPossible(str(error)) from None
