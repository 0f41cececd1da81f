"""What every remedy can do: say why not, apply, say when it is in effect, and be undone by applying the old value."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol


class NotPossible(RuntimeError):
    """The change is refused and nothing was touched. The text is the reason, for the ledger."""


@dataclasses.dataclass(frozen=True)
class Offer:
    """A change that is possible here, or would be but for `refusal`.

    Attributes:
        remedy: its id.
        value: now.
        to: what is offered; equal to `value` where nothing is left to offer.
        exactness: "exact", "rounding", "distribution", "precision" or "semantics", in this run.
        exactness_reason: why it is that class here; empty where it is the usual one.
        at_epoch_turn: takes effect when the next pass over the loader begins.
        refusal: why it cannot be done here; empty where it can.
        by_hand: never made unasked, only by `mon.apply`.
        protective: it guards the run and gains no time; made without a trial where its finding is a danger.
        of_process: it changes the process and not the loader, which it outlives.
    """

    remedy: str
    value: int
    to: int
    exactness: str = "exact"
    exactness_reason: str = ""
    at_epoch_turn: bool = False
    refusal: str = ""
    protective: bool = False
    by_hand: bool = False
    of_process: bool = False


class Remedy(Protocol):
    """One kind of reversible change to one subject (a loader, or the process).

    Methods are called on the training thread at a step boundary, or for a loader on the thread that consumes it.
    """

    id: str

    def offer(self, subject: Any, loader: Any) -> Offer | None:
        """What could be changed in this loader now; None where the remedy has nothing to do with it, or where the
        controller chooses the value. Cheap: asked at every look. Never raises."""

    def apply(self, subject: Any, value: int) -> None:
        """Asks for `value`. May take effect later.

        Raises:
            NotPossible: with the reason; nothing was changed.
        """

    def in_effect(self, subject: Any) -> bool:
        """Whether what was asked for is what runs now."""

    def failure(self, subject: Any) -> str | None:
        """Why what was asked for will not come about, or None."""

    def restore(self) -> None:
        """Leaves nothing behind in the process: at detach, after loaders were given back."""
