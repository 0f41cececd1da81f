"""What a detached monitor still knows: the engine it asked belongs to the next attachment by then."""

from __future__ import annotations

import dataclasses
from types import ModuleType


@dataclasses.dataclass(frozen=True)
class Archive:
    """The reading side of the engine as plain text. `epochs`: (number, text, JSON), oldest first."""

    epochs: list[tuple[int, str, str]]
    findings_json: str
    ledger_json: str
    recipe: str
    run_json: str
    state_line: str

    @classmethod
    def of(cls, core: ModuleType) -> Archive:
        return cls(
            core.epochs(),
            core.findings_json(),
            core.ledger_json(),
            core.recipe(),
            core.run_json(),
            core.state_line(),
        )

    def epoch(self, number: int) -> tuple[str, str] | None:
        """(text, JSON) of an epoch by its number, -1 for the last."""
        for found, text, values in reversed(self.epochs):
            if number in (found, -1):
                return text, values
        return None
