"""Patches that can always be taken back: each keeps the original and is undone in reverse order."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class PatchStack:
    """Attributes of classes or modules that were replaced, in order.

    When somebody patched on top of ours, taking ours out would take theirs out too. Ours then stays where it is
    (the engine is detached, so it passes straight through) and `undo` says so.
    """

    def __init__(self) -> None:
        self._patches: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Sets ``owner.name``; remembers whether the owner itself had it."""
        original = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._patches.append((owner, name, original, vars(owner)[name]))

    def intact(self) -> bool:
        """True while every patch is still the one in place."""
        return all(vars(owner).get(name) is ours for owner, name, _, ours in self._patches)

    def undo(self) -> list[str]:
        """Takes every patch back. Returns one sentence for each that had to stay."""
        left = []
        while self._patches:
            owner, name, original, ours = self._patches.pop()
            if vars(owner).get(name) is not ours:
                left.append(
                    f"{owner.__name__}.{name} was patched by somebody else after gpuutil; "
                    "gpuutil's part of it passes straight through"
                )
            elif original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        return left
