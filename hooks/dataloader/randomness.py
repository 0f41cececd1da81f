"""Notices whether a piece of user code draws from the global random generators. Never draws itself.

Watched: torch's CPU generator, `random`, and numpy's legacy generator if numpy is imported. One
    look costs some tens
of microseconds, so fetches are watched only a few times per loader.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from .conveyor import Doubt

ENOUGH = 3
"""Watched fetches, or reads of a sampler, without a draw after which the answer is taken as no."""


def snapshot() -> tuple[Any, ...]:
    """The states of the global generators, comparable with `==`."""
    state = bytes(memoryview(torch.get_rng_state().numpy())) if "numpy" in sys.modules else None
    if state is None:
        state = bytes(torch.get_rng_state().tolist())
    numpy = sys.modules.get("numpy")
    drawn: tuple[Any, ...] = ()
    if numpy is not None:
        legacy = numpy.random.get_state(legacy=False)
        inner = legacy["state"]
        key = inner.get("key")
        drawn = (
            key.tobytes() if key is not None else repr(inner),
            inner.get("pos"),
            legacy.get("has_gauss"),
        )
    return state, random.getstate(), drawn


class Watch:
    """Counts the calls watched and remembers whether any drew. `draws`: None as long as too few
    were seen."""

    def __init__(self) -> None:
        self.seen = 0
        self.drew = False

    @property
    def draws(self) -> bool | None:
        return True if self.drew else (False if self.seen >= ENOUGH else None)

    @property
    def wanting(self) -> bool:
        """Whether more calls ought to be watched."""
        return not self.drew and self.seen < ENOUGH

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        before = snapshot()
        result = function(*arguments)
        self.seen += 1
        self.drew = self.drew or snapshot() != before
        return result

    def read(self, read: Callable[[], None]) -> None:
        """For `conveyor.Conveyor(watch=…)`."""
        self.call(read)
        if self.drew:
            raise Doubt(
                "the sampler draws random numbers while it is read: its depth must not change"
            )
