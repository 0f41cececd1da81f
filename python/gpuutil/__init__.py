"""gpuutil: says where a training run's time goes, and fixes it while it trains.

    import gpuutil
    gpuutil.attach(model)

Importing this package costs milliseconds: torch, CUDA and the engine are touched by `attach`, not before.
"""

from __future__ import annotations

from . import inherited as _inherited  # noqa: F401  # before anything that may pin this process
from .attach import attach
from .config import Config
from .monitor import Monitor

__all__ = ["Config", "Monitor", "attach"]
__version__ = "0.1.0"
