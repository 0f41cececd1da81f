"""The hands: one file a remedy."""

from __future__ import annotations

from typing import Any

from .base import NotPossible, Offer, Remedy
from .fd_limit import FdLimit
from .loader_batch_fetch import LoaderBatchFetch
from .loader_persistent import LoaderPersistent
from .loader_prefetch import LoaderPrefetch
from .loader_workers import LoaderWorkers
from .main_threads import MainThreads
from .worker_affinity import WorkerAffinity

__all__ = ["ALL", "NotPossible", "Offer", "Remedy", "offers"]

ALL: dict[str, Remedy] = {
    remedy.id: remedy
    for remedy in (
        LoaderBatchFetch(),
        LoaderPrefetch(),
        LoaderWorkers(),
        LoaderPersistent(),
        WorkerAffinity(),
        FdLimit(),
        MainThreads(),
    )
}
"""By id, in the order in which the parts of one compound change are applied (and undone in reverse)."""


def offers(subject: Any, loader: Any) -> list[Offer]:
    """What could be changed in this loader now, beside the numbers that the controller finds by itself."""
    made = (remedy.offer(subject, loader) for remedy in ALL.values())
    return [offer for offer in made if offer is not None]
