"""What every remedy can do: say why not, apply, say when it is in effect, and be undone by applying the old value."""

from __future__ import annotations

from typing import Any, Protocol


class NotPossible(RuntimeError):
    """The change is refused and nothing was touched. The text is the reason, for the ledger."""


class Remedy(Protocol):
    """One kind of reversible change to one subject (a loader, or the process).

    Methods are called on the training thread at a step boundary, or for a loader on the thread that consumes it.
    """

    id: str

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
