"""The private worker processes of one loader: brought to a wanted number, kept over epoch turns if
that is safe."""

from __future__ import annotations

import dataclasses
from typing import Any

from . import payload as payloads
from . import start_method
from . import worker as workers
from .payload import Parts
from .refusal import NotPossible
from .transport import ProcessTransport
from .worker import Worker

PICKLE_SECONDS = 0.05
"""How long the consumer may be held up by pickling (once per request and once per epoch with fresh
workers)."""
FINGERPRINT_SECONDS = 0.02
PAYLOAD_BYTES = 256 << 20
_SEED_STRIDE = 65537


@dataclasses.dataclass
class Recipe:
    """How to start workers for one iterator. `payload` is None under fork."""

    method: str
    parts: Parts
    payload: bytes | None
    import_main: bool
    fingerprint: str | None


def make_recipe(loader: Any, iterator: Any, prove: bool = True) -> Recipe:
    """Decides how workers would be started.

    Args:
        prove: under fork, whether to take the data set's fingerprint.

    Raises:
        NotPossible: they cannot, with the reason.
    """
    method = start_method.choose(loader)
    init = getattr(iterator, "_worker_init_fn", loader.worker_init_fn)
    parts = Parts(iterator, init)
    if method == "fork":
        proof = payloads.fingerprint(parts, FINGERPRINT_SECONDS, PAYLOAD_BYTES) if prove else None
        return Recipe(method, parts, None, False, proof)
    data, fingerprint = payloads.dump(parts, PICKLE_SECONDS, PAYLOAD_BYTES, keep=True)
    return Recipe(method, parts, data, start_method.imports_main(data), fingerprint)


class Pool:
    """Used on the consumer's thread. Never waits, except in `close`."""

    def __init__(self, transport: ProcessTransport | None = None) -> None:
        self.transport = transport or ProcessTransport()
        self.ready: list[Worker] = []
        self.starting: list[Worker] = []
        self.failures: list[str] = []
        self.gave_up = False
        """A start failed: no more starts until somebody asks again."""
        self.generation = 0
        self._prepared: Recipe | None = None
        self._everyone: list[Worker] = []
        self._fingerprints: dict[Worker, str | None] = {}
        self._starts = 0

    def steady(self, target: int) -> bool:
        """Whether `step(target)` would do nothing."""
        have = len(self.ready)
        return not self.starting and (have == target or (self.gave_up and have < target))

    def prepare(self, loader: Any, iterator: Any) -> None:
        """Finds out whether a worker could be started, and keeps what that took for the start.

        Raises:
            NotPossible: it could not, with the reason.
        """
        self._prepared = None
        if start_method.choose(loader) != "fork":
            self._prepared = make_recipe(loader, iterator)

    def next_generation(self) -> int:
        """A number for a new user of the workers; what they still have from earlier ones is
        dropped."""
        self.generation += 1
        self.transport.forget(self.ready)
        return self.generation

    def step(self, target: int, loader: Any, iterator: Any, first_id: int) -> list[Worker]:
        """One step towards `target` workers: at most one fork. Returns ready workers that are too
        many.

        The caller retires those; they are not in `ready` any more.
        """
        self._everyone = [w for w in self._everyone if not w.ended.is_set()]
        for worker in [w for w in self.starting if w.poll()]:
            self.starting.remove(worker)
            if worker.ready:
                self.ready.append(worker)
            else:
                self._failed(worker, worker.failure or "unknown")
        while self.starting and len(self.ready) + len(self.starting) > target:
            self.starting.pop().end()
        surplus = self.ready[target:]
        del self.ready[target:]
        missing = target - len(self.ready) - len(self.starting)
        if missing > 0 and not self.gave_up:
            recipe, self._prepared = self._prepared, None
            try:
                # One worker without a fingerprint is enough: none of them outlives the epoch then.
                prove = None not in self._fingerprints.values()
                recipe = recipe or make_recipe(loader, iterator, prove)
                self._start(recipe, missing, target, iterator._base_seed, first_id)
            except NotPossible as refusal:
                self.gave_up = True
                self.failures.append(str(refusal))
        return surplus

    def _start(self, recipe: Recipe, missing: int, target: int, seed: int, first_id: int) -> None:
        count = 1 if recipe.method == "fork" else missing
        position = len(self.ready) + len(self.starting)
        fresh = []
        for i in range(position, position + count):
            # The seeds of a stock loader; a worker started again later must not repeat its random
            # stream.
            turn = max(0, self._starts - i)
            worker = Worker(
                recipe.method,
                seed + _SEED_STRIDE * turn,
                first_id + i,
                first_id + target,
                recipe.import_main,
            )
            self._starts += 1
            self._fingerprints[worker] = recipe.fingerprint
            fresh.append(worker)
        self._everyone += fresh
        self.starting += fresh
        if recipe.method == "fork":
            try:
                fresh[0].fork(recipe.parts)
            except OSError as error:
                self.starting.remove(fresh[0])
                self._failed(fresh[0], f"fork failed: {error}")
        else:
            assert recipe.payload is not None
            workers.start_remote(fresh, recipe.payload)

    def _failed(self, worker: Worker, reason: str) -> None:
        self.failures.append(reason)
        self.gave_up = True
        self._fingerprints.pop(worker, None)
        worker.end()

    def reusable(self, loader: Any, iterator: Any, persistent: bool) -> bool:
        """Whether the workers may serve a new epoch: provably the same data set, or the user wants
        them to persist."""
        if persistent:
            return True
        if payloads.has_epoch_state(iterator._dataset):
            return False
        known = {self._fingerprints.get(w) for w in self.ready + self.starting}
        if len(known) != 1 or None in known:
            return False
        init = getattr(iterator, "_worker_init_fn", loader.worker_init_fn)
        now = payloads.fingerprint(Parts(iterator, init), FINGERPRINT_SECONDS, PAYLOAD_BYTES)
        return now in known

    def drop_all(self) -> None:
        """Asks every worker to end; waits for none."""
        for worker in self.ready + self.starting:
            worker.end()
        self.ready, self.starting = [], []
        self._fingerprints = {}
        self._prepared = None
        self._starts = 0

    def close(self) -> None:
        """Ends every worker that was ever started here and waits until they are gone."""
        self.drop_all()
        for worker in self._everyone:
            worker.end()
        if not workers.wait_ended(self._everyone, workers.GRACE_SECONDS + 4):
            self.failures.append("a worker process could not be ended")
        self._everyone = []
