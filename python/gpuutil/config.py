"""What a run may be told: arguments of `attach`, then environment variables, then defaults."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RUNGS = ("observe", "exact", "auto", "precision", "all")
"""The ladder of what may be changed unasked, least first (exactness classes up to the rung)."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings that few runs need.

    Attributes:
        startup_steps: sampled steps in a row at the start, to learn the loop's structure. 0 observes no operators.
        period_seconds: how often the engine's own thread wakes.
        host_period_seconds: how often it reads procfs and cgroup files.
        start_credit_seconds: regret that tuning may cost at the start, beyond its share of the run.
        regret_ratio: regret that tuning may cost, as a share of the elapsed run.
        max_workers: the most worker processes a loader may get; None: from the CPU and memory budget.
        worker_start_seconds: after this long a worker that has not reported ready is given up.
        keep_runs: runs kept in the default log directory.
        keep_bytes: bytes kept in the default log directory.
    """

    startup_steps: int = 20
    period_seconds: float = 0.05
    host_period_seconds: float = 0.5
    start_credit_seconds: float = 10.0
    regret_ratio: float = 0.01
    max_workers: int | None = None
    worker_start_seconds: float = 60.0
    keep_runs: int = 20
    keep_bytes: int = 50_000_000

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "max_workers" and value is None:
                continue
            kinds = (int,) if "int" in str(field.type) else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise TypeError(f"config.{field.name} must be a number, not {type(value).__name__}")
            if value < 0 or (value == 0 and field.name.startswith(("period", "host_period"))):
                raise ValueError(f"config.{field.name} must be positive, got {value}")


def as_config(value: Config | Mapping[str, Any] | None) -> Config:
    """A Config from what `attach(config=...)` was given.

    Raises:
        TypeError: neither a Config nor a mapping.
        ValueError: a key that Config does not have.
    """
    if value is None:
        return Config()
    if isinstance(value, Config):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"config must be a gpuutil.Config or a mapping, not {type(value).__name__}")
    names = {field.name for field in dataclasses.fields(Config)}
    for key in value:
        if key not in names:
            raise ValueError(f"config has no setting {key!r}; it knows {', '.join(sorted(names))}")
    return Config(**value)


def rung(name: str, source: str) -> str:
    """`name` if it is on the ladder.

    Raises:
        TypeError, ValueError: naming `source`.
    """
    if not isinstance(name, str):
        raise TypeError(f"{source} must be one of {', '.join(RUNGS)}, not {type(name).__name__}")
    if name not in RUNGS:
        raise ValueError(f"{source} must be one of {', '.join(RUNGS)}, got {name!r}")
    return name


def resolve_apply(argument: str | None, deterministic: str | None) -> tuple[str, str]:
    """The rung that holds for this run, and why it is not the one asked for (or "").

    Args:
        argument: `apply=` as given in code, None where it was not.
        deterministic: what asks for determinism in this run, None where nothing does.
    """
    default = os.environ.get("GPUUTIL_APPLY") or "auto"
    chosen, why = rung(default, "GPUUTIL_APPLY"), ""
    if argument is not None:
        chosen = rung(argument, "apply")
    elif deterministic and RUNGS.index(chosen) > RUNGS.index("exact"):
        chosen, why = "exact", f"this run asks for determinism ({deterministic})"
    ceiling = os.environ.get("GPUUTIL_APPLY_MAX")
    if ceiling and RUNGS.index(rung(ceiling, "GPUUTIL_APPLY_MAX")) < RUNGS.index(chosen):
        chosen, why = ceiling, "GPUUTIL_APPLY_MAX"
    return chosen, why


def disabled() -> bool:
    """True where GPUUTIL_DISABLE=1 makes everything a no-op."""
    return os.environ.get("GPUUTIL_DISABLE", "") not in ("", "0")


def log_directory(value: str | os.PathLike[str] | bool | None) -> tuple[Path, bool] | None:
    """Where report files go, or None where they are off.

    Returns:
        The folder, and whether it is gpuutil's own parent folder, in which each run makes one for itself.

    Raises:
        TypeError: neither a path, a bool nor None.
    """
    if value is False:
        return None
    if value is None or value is True:
        chosen = os.environ.get("GPUUTIL_LOG_DIR")
        return (Path(chosen), False) if chosen else (Path("gpuutil_logs"), True)
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"log_dir must be a path, False or None, not {type(value).__name__}")
    return Path(value), False
