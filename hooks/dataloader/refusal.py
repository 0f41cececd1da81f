"""Why a change does not come about: the one exception that callers of this package see."""

from __future__ import annotations


class NotPossible(RuntimeError):
    """The change is refused and nothing was touched. The text is the reason, fit for the ledger."""
