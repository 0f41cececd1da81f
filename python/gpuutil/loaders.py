"""The DataLoaders of this process: an id for each, facts for the engine, and the handle for live changes."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _DatasetKind

from .hooks.dataloader import observed
from .hooks.dataloader.batch_fetch import BatchFetch
from .hooks.dataloader.keep import KEEP, Keeper
from .hooks.dataloader.live import LiveLoader

_FIRST_LOOKS = 14  # boundaries after the start of a pass
_BATCH_LOOKS = 8  # at batches that wait, for how large they are


class WatchedLoader:
    """One loader: its id, its live handle and what the engine was last told about it. Holds the loader weakly."""

    def __init__(
        self, loader: DataLoader, identity: int, changes: bool, offers: Callable[[Any, Any], list[Any]]
    ) -> None:
        self.id = identity
        self._offers = offers
        self.reference = weakref.ref(loader)
        self.name = f"{type(loader.dataset).__name__} loader"
        self.live = LiveLoader(loader) if changes else None
        self.batch = BatchFetch()
        self.keeper = Keeper(loader)
        self.refusal: str | None = None
        self._batch_bytes: int | None = None
        self._batch_looks = _BATCH_LOOKS
        self.restless = False
        """Something in force wants to see the workers of each pass once they have begun."""
        if not changes and loader._dataset_kind == _DatasetKind.Iterable:
            self.refusal = "the data set is iterable: its items belong to the number of workers"
        self._iterator: weakref.ref[Any] | None = None
        self._told: dict[str, Any] | None = None

    def bind(self, iterator: Any, fresh: bool = True) -> None:
        """An iterator, on the thread that consumes it: what was decided for the loader is applied to it.

        Args:
            fresh: it was made just now.
        """
        self._iterator = weakref.ref(iterator)
        self.keeper.bind(iterator, fresh)
        if self.live is not None:
            self.refusal = self.live.supported(iterator)
            if self.refusal is None:
                self.live.bind(iterator)
        self.batch.bind(iterator)

    def iterator(self) -> Any:
        """The iterator of the pass that began last, or None."""
        return self._iterator() if self._iterator is not None else None

    @property
    def unsettled(self) -> bool:
        """Whether the first fetches still have something to show: draws of random numbers, costs, how workers pin
        themselves."""
        if self.batch.watching or self.restless:
            return True
        return self.live is not None and self.refusal is None and self.live.state.draws_random is None

    def worker_pids(self) -> list[int]:
        """Every worker process of this loader that runs now: torch's own, also of a loader left alone, and ours."""
        added = self.live.state.worker_pids if self.live is not None else ()
        return observed.pids_of(observed.worker_pids(self.iterator()), added)

    def _look_at_batches(self) -> int | None:
        if self._batch_looks > 0:
            size = observed.batch_bytes(self.iterator())
            if size is not None:
                self._batch_looks -= 1
                self._batch_bytes = max(size, self._batch_bytes or 0)
        return self._batch_bytes

    def allow_changes(self, loader: DataLoader) -> None:
        """From observing to changing. On the thread that consumes the loader."""
        if self.live is not None:
            return
        self.live, self.refusal = LiveLoader(loader), None
        iterator = self.iterator()
        if iterator is not None:
            self.bind(iterator, fresh=False)

    def facts(self, loader: DataLoader) -> dict[str, Any]:
        """What the engine's rules and search read; plain values."""
        state = self.live.state if self.live is not None else None
        workers = loader.num_workers
        prefetch = loader.prefetch_factor or 0
        if state is not None and self.refusal is None:
            workers, prefetch = state.workers_active, state.prefetch
        return {
            "id": self.id,
            "name": self.name,
            "iterable": loader._dataset_kind == _DatasetKind.Iterable,
            "workers": workers,
            "user_workers": loader.num_workers,
            "prefetch": prefetch if workers else 0,
            "batch_size": loader.batch_size or 0,
            **_pass_length(loader),
            "persistent": bool(loader.persistent_workers) or self.keeper.reusing,
            "workers_changeable": self.refusal is None,
            "workers_reason": self.refusal or "",
            "draws_random": state.draws_random if state is not None else None,
            "worker_pids": self.worker_pids(),
            "fetch": dataclasses.asdict(self.batch.cost),
            "batch_bytes": self._look_at_batches(),
            "offers": [dataclasses.asdict(offer) for offer in self._offers(self, loader)],
        }

    def close(self) -> None:
        """Gives the loader back as its user made it."""
        self.batch.close()
        if self.live is not None:
            self.live.close()
        self.keeper.close()

    def tell(self, core: ModuleType) -> None:
        """Hands the facts to the engine if they moved."""
        loader = self.reference()
        if loader is None:
            return
        facts = self.facts(loader)
        if facts != self._told:
            core.set_loader(**facts)
            self._told = facts


class LoaderWatch:
    """All loaders seen since attach. Called on the threads that iterate; never raises into them.

    Args:
        core: the engine's module.
        changes: whether loaders may be changed at all (more than one rank, or `observe`, may not).
        offers: what else could be changed in a loader now (`remedies.offers`).
    """

    def __init__(
        self, core: ModuleType, changes: bool, offers: Callable[[Any, Any], list[Any]] = lambda *_: []
    ) -> None:
        self._core = core
        self._offers = offers
        self._changes = changes
        self._latest = 0
        self._looks_left = 0
        self._by_key: dict[int, WatchedLoader] = {}
        self._by_id: dict[int, WatchedLoader] = {}
        self._marked: weakref.WeakSet[Any] = weakref.WeakSet()

    def watch(self, loader: DataLoader) -> WatchedLoader:
        """The entry of this loader, made on first sight."""
        entry = self._by_key.get(id(loader))
        if entry is None or entry.reference() is not loader:
            self._latest += 1
            entry = WatchedLoader(loader, self._latest, self._changes, self._offers)
            self._by_key[id(loader)] = self._by_id[entry.id] = entry
            weakref.finalize(loader, self._forget, id(loader), entry.id).atexit = False
        return entry

    def loader_id(self, loader: DataLoader) -> int:
        return self.watch(loader).id

    def by_id(self, identity: int) -> WatchedLoader | None:
        return self._by_id.get(identity)

    def has_seen(self, identity: int) -> bool:
        """Whether a loader with this id ever was; a replayed change may name one that is still to come."""
        return identity <= self._latest

    def reopen(self, loader: DataLoader) -> Any:
        """The iterator of a new pass with the workers of the one before; None where fresh ones have to be started.
        Raises only what the user's own code raises in it."""
        return self.watch(loader).keeper.reopen(loader)

    def bind(self, loader: DataLoader, iterator: Any, fresh: bool = True) -> None:
        """Marks an iterator with its loader's id and applies what was decided for the loader."""
        entry = self.watch(loader)
        iterator._gpuutil_source = entry.id
        self._marked.add(iterator)
        entry.bind(iterator, fresh)
        entry.tell(self._core)
        self._looks_left = _FIRST_LOOKS
        if entry.restless:
            self._looks_left += 2 * loader.num_workers  # a fetch and a step for each worker's first batch
        if self.unsettled:
            self._core.ask_for_attention()

    def allow_changes(self) -> None:
        """A remedy was asked for by hand in a run that is only observed. Any thread: nothing is touched yet."""
        self._changes = True

    def make_changeable(self, entry: WatchedLoader) -> None:
        """Before a change to this loader, on the thread that consumes it."""
        loader = entry.reference()
        if self._changes and loader is not None:
            entry.allow_changes(loader)

    def resolve(self, iterator: Any) -> int:
        """The id for an iterator that was running before attach.

        torch's iterators do not know their loader. The loader is the owner of the sampler object that both hold;
        asking the collector who refers to it costs tens of milliseconds, once.
        """
        iterator._gpuutil_source = 0
        self._marked.add(iterator)
        for holder in gc.get_referrers(iterator._index_sampler):
            owners = [holder] if isinstance(holder, DataLoader) else ()
            if isinstance(holder, dict) and "batch_sampler" in holder and "dataset" in holder:
                owners = [o for o in gc.get_referrers(holder) if isinstance(o, DataLoader)]
            for owner in owners:
                if owner.dataset is iterator._dataset:
                    self.bind(owner, iterator, fresh=False)
                    return iterator._gpuutil_source
        return 0

    def tell_all(self) -> None:
        """Hands changed facts to the engine."""
        self._looks_left = max(0, self._looks_left - 1)
        for entry in list(self._by_id.values()):
            entry.tell(self._core)

    @property
    def unsettled(self) -> bool:
        """Whether the first fetches of a pass are still showing what decides over changes."""
        return self._looks_left > 0 and any(entry.unsettled for entry in list(self._by_id.values()))

    def close(self) -> None:
        """Gives every loader back as its user made it and removes every mark."""
        for entry in list(self._by_id.values()):
            entry.close()
        for iterator in list(self._marked):
            iterator.__dict__.pop("_gpuutil_source", None)
            iterator.__dict__.pop(KEEP, None)
        self._by_key.clear()
        self._by_id.clear()

    def _forget(self, key: int, identity: int) -> None:
        entry = self._by_id.pop(identity, None)
        if entry is not None and self._by_key.get(key) is entry:
            del self._by_key[key]
        if entry is not None:
            entry.close()
        self._core.remove_loader(identity)


def _pass_length(loader: DataLoader) -> dict[str, int]:
    """How many batches a pass has and how large its last one is; zeros where nobody can tell."""
    nothing = {"batches": 0, "last_batch_size": 0}
    if loader._dataset_kind == _DatasetKind.Iterable or not loader.batch_size:
        return nothing
    try:
        items = len(loader.sampler)  # type: ignore[arg-type]
    except Exception:
        return nothing
    whole, rest = divmod(items, loader.batch_size)
    if rest and not loader.drop_last:
        return {"batches": whole + 1, "last_batch_size": rest}
    return {"batches": whole, "last_batch_size": loader.batch_size}
