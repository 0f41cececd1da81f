"""What the process came with, taken down on import: before anything imported later can narrow it."""

from __future__ import annotations

import os

CPUS: frozenset[int] = frozenset(
    os.sched_getaffinity(os.getpid()) if hasattr(os, "sched_getaffinity") else ()
)
"""The CPUs that its main thread might run on when gpuutil was imported: no mask is ever set wider. Empty: not known."""
