"""What is true of one training script."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Edit:
    """Lines of a script that somebody who knows would write another way."""

    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Truth:
    """One script of `cases/`.

    Attributes:
        script: its name, without `.py`.
        casebook: the case that it retells: family and number, T- tricky, R reproduction; empty for a
            healthy script that retells none.
        why: what is the matter, or what is right, in a few words.
        finds: finding ids of which one must come first. None: no warning may come.
        never: findings that would mislead and must not come as a warning.
        remedies: what would mend it live; empty where only other code, or another machine, would.
        refused: remedies that must not be kept: they would change the result, or harm.
        fix: the hand-made fix.
        fix_is_live: whether a remedy can reach what `fix` does, so that the share of its gain counts.
        same_order: samples and their order must stay bit-identical to those of a plain run.
        same_parameters: so must the parameters at the end. Both are waived where the ledger of the
            run announces more than `exact` (for the order: more than `rounding`).
        quick: arguments of a short run.
        cpus: CPUs that the runner lets the script see; None: all.
        neighbours: busy processes that the runner starts beside it.
    """

    script: str
    casebook: str
    why: str
    finds: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    fix: tuple[Edit, ...] = ()
    fix_is_live: bool = True
    same_order: bool = True
    same_parameters: bool = True
    quick: tuple[str, ...] = ("--epochs", "1", "--items", "64")
    cpus: int | None = None
    neighbours: int = 0

    @property
    def healthy(self) -> bool:
        return not self.finds


class FixError(ValueError):
    """A fix no longer fits its script."""


def fixed(source: str, fix: tuple[Edit, ...]) -> str:
    """The script with the edits made.

    Raises:
        FixError: an edit's old text is not there exactly once.
    """
    for edit in fix:
        if source.count(edit.old) != 1:
            raise FixError(f"found {source.count(edit.old)} times, not once: {edit.old!r}")
        source = source.replace(edit.old, edit.new)
    return source
