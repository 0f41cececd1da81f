"""loader_persistent: the loader's own workers kept between epochs, as persistent_workers=True would."""

from __future__ import annotations

from typing import Any

from ..hooks.dataloader.refusal import NotPossible as _Refused
from ..loaders import WatchedLoader
from .base import NotPossible, Offer


class LoaderPersistent:
    """`value` is 1 where workers outlive the epoch. Unlike with torch's own switch the base seed is drawn in every
    epoch and the workers are seeded with it, so that shuffles and random items are those of the loader as it was."""

    id = "loader_persistent"

    def offer(self, subject: WatchedLoader, loader: Any) -> Offer | None:
        """None where the loader has no workers or keeps them anyhow, and before its second pass."""
        keeper = subject.keeper
        if not loader.num_workers or loader.persistent_workers or keeper.passes < 2:
            return None
        value = int(keeper.wanted)
        if subject.live is None or not keeper.wanted:  # the data set is not looked into unasked: it may be large
            return Offer(self.id, value, 1, at_epoch_turn=True, by_hand=True)
        prospect = keeper.prospect()
        return Offer(
            self.id, value, 1, prospect.exactness, prospect.reason, at_epoch_turn=True,
            refusal=prospect.refusal, by_hand=True,
        )  # fmt: skip

    def apply(self, subject: WatchedLoader, value: int) -> None:
        if subject.live is None:
            raise NotPossible("this loader is only observed")
        try:
            subject.keeper.request(bool(value))
        except _Refused as error:
            raise NotPossible(str(error)) from None

    def in_effect(self, subject: WatchedLoader) -> bool:
        return subject.keeper.in_effect

    def failure(self, subject: WatchedLoader) -> str | None:
        return subject.keeper.problem

    def restore(self) -> None:
        """Nothing: a loader is given back by its own keeper."""
