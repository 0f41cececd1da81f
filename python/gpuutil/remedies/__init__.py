"""The hands: one file a remedy."""

from __future__ import annotations

from .base import NotPossible, Remedy
from .loader_prefetch import LoaderPrefetch
from .loader_workers import LoaderWorkers
from .main_threads import MainThreads

__all__ = ["ALL", "NotPossible", "Remedy"]

ALL: dict[str, Remedy] = {
    remedy.id: remedy for remedy in (LoaderPrefetch(), LoaderWorkers(), MainThreads())
}
"""By id, in the order in which the parts of one compound change are applied (and undone in reverse)."""
