"""Random sequences of live changes against workers that live in this process and mean harm.

Both kinds of iterator are torch's real ones; only the processes behind them are played. The
adversary decides who answers when (any order, bursts, silence), repeats answers, lets answers of an
earlier generation arrive late, kills added workers, makes a batch fail in workers only, and presses
Ctrl-C inside a send or a receive. What comes out is compared with the undisturbed stock loader in
this process: batches, the trainer's own draws between them, and the final states of the generators.
"""

from __future__ import annotations

import collections
import random
from typing import Any

import torch
from shapes import Backwards, Ragged
from torch.utils.data import DataLoader, Dataset

from gpuutil.hooks.dataloader import rehearsal
from gpuutil.hooks.dataloader.conveyor import WorkerLost
from gpuutil.hooks.dataloader.live import LiveLoader, NotPossible

Counts = collections.Counter


class _Interrupt(KeyboardInterrupt):
    """The adversary's Ctrl-C."""


class Numbers(Dataset):
    """Item i is i, cheaply. Some items fail, some fail in (played) workers only."""

    def __init__(self, length: int, bad: set[int]) -> None:
        self.length, self.bad = length, bad

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        if index in self.bad:
            raise ValueError(f"item {index}")
        return index


def as_tuple(items: Any) -> Any:
    return tuple(items) if isinstance(items, list) else items


class Failing(torch.utils.data.Sampler):
    """Raises in the middle of its reads, once."""

    def __init__(self, length: int, at: int) -> None:
        self.length, self.at = length, at

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Any:
        for i in range(self.length):
            if i == self.at:
                raise KeyError(f"sampler {i}")
            yield i


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Mischief(rehearsal.Schedule):
    """The adversary's choices."""

    def __init__(self, draw: random.Random, kills: bool) -> None:
        self.draw = draw
        self.kills = kills
        self.interrupts = 0.0

    def order(self, candidates: list[Any]) -> list[Any]:
        chosen = [c for c in candidates if self.draw.random() < 0.7]
        self.draw.shuffle(chosen)
        return chosen or [self.draw.choice(candidates)]

    def maybe_interrupt(self) -> None:
        if self.draw.random() < self.interrupts:
            raise _Interrupt


class MeanTransport(rehearsal.RehearsalTransport):
    def __init__(self, schedule: Mischief, clock: _Clock, counts: Counts) -> None:
        super().__init__(schedule)
        self.clock = clock
        self.counts = counts
        self.dead: set[Any] = set()
        self.silent: set[Any] = set()
        self.past: list[Any] = []
        self.late: list[Any] = []
        self.liars = False

    def send(self, worker: Any, key: Any, indices: Any) -> None:
        self.schedule.maybe_interrupt()
        if worker in self.dead:
            raise WorkerLost("killed")
        super().send(worker, key, indices)
        self.schedule.maybe_interrupt()

    def receive(self, owner: Any, workers: Any, timeout: float) -> list[Any]:
        draw = self.schedule.draw
        self.schedule.maybe_interrupt()
        workers = list(workers)
        if self.schedule.kills and workers and draw.random() < 0.04:
            victim = draw.choice(workers)
            (self.dead if draw.random() < 0.7 else self.silent).add(victim)
            self.counts["killed"] += 1
        for worker in workers:
            if worker in self.dead and (worker is owner or draw.random() < 0.3):
                raise WorkerLost("killed")
        if not timeout and draw.random() < 0.6:
            return []
        able = [w for w in workers if w.tasks and w not in self.silent and w not in self.dead]
        events = []
        for worker in self.schedule.order(able) if able else []:
            for _ in range(min(len(worker.tasks), draw.choice((1, 1, 2)))):
                key, indices = worker.tasks.popleft()
                events.append((worker, key, self._data(worker, indices)))
        if not events and timeout:
            self.clock.now += timeout
        if self.past and draw.random() < 0.15:
            events.append(draw.choice(self.past))
            self.counts["repeated"] += 1
        if self.late and draw.random() < 0.5:
            events.append(self.late.pop())
            self.counts["late"] += 1
        self.past = (self.past + events)[-8:]
        draw.shuffle(events)
        self.schedule.maybe_interrupt()
        return events

    def _data(self, worker: Any, indices: Any) -> Any:
        if self.liars and self.schedule.draw.random() < 0.004:
            self.counts["failed in a worker only"] += 1
            try:
                raise OSError("only here")
            except OSError:
                return rehearsal.ExceptionWrapper(where="in a rehearsal worker")
        return rehearsal.fetch(worker.fetcher, indices)

    def forget(self, workers: Any) -> None:
        for worker in workers:
            while worker.tasks:
                key, indices = worker.tasks.popleft()
                self.late.append((worker, key, rehearsal.fetch(worker.fetcher, indices)))


class MeanPool(rehearsal.RehearsalPool):
    def _start(self, recipe: Any, missing: int, target: int, seed: int, first_id: int) -> None:
        super()._start(recipe, missing, target, seed, first_id)
        if self.transport.schedule.draw.random() < 0.05:
            self.starting[-1].failure = "died at birth"

    def reusable(self, loader: Any, iterator: Any, persistent: bool) -> bool:
        return self.transport.schedule.draw.random() < 0.7


# ---- one sequence


def plan(seed: int) -> dict[str, Any]:
    """All that is random about the loader."""
    draw = random.Random(seed)
    length = draw.choice([0, 1, 2, 5, 12, 23, 40])
    made = {
        "length": length,
        "batch": draw.choice([1, 2, 3, 5]),
        "workers": draw.choice([0, 0, 1, 2, 3]),
        "prefetch": draw.choice([1, 2, 3]),
        "epochs": draw.choice([1, 2, 2, 3]),
        "sampler": draw.choice(
            ["seq", "shuffle", "generator", "generator", "backwards", "ragged", "single", "failing"]
        ),
        "drop_last": draw.random() < 0.3,
        "in_order": draw.random() > 0.1,
        "persistent": draw.random() < 0.3,
        "bad": set(draw.sample(range(length), min(length, 2))) if draw.random() < 0.25 else set(),
        "rate": draw.choice([0.1, 0.3, 0.6]),
        "kills": draw.random() < 0.3,
        "interrupts": draw.choice([0, 0, 0, 0.02]),
    }
    made["breaks"] = {e: draw.randint(1, 12) for e in range(made["epochs"]) if draw.random() < 0.25}
    if made["sampler"] == "failing" or made["interrupts"]:
        # Else the batch that the stock loader drops with a sampler's error depends on arrival.
        made["in_order"] = True
    return made


def build(made: dict[str, Any], seed: int) -> tuple[DataLoader, torch.Generator]:
    data = Numbers(made["length"], made["bad"])
    arguments: dict[str, Any] = {"num_workers": made["workers"], "collate_fn": as_tuple}
    if made["workers"]:
        arguments.update(
            prefetch_factor=made["prefetch"],
            in_order=made["in_order"],
            persistent_workers=made["persistent"],
        )
    generator = torch.Generator().manual_seed(seed)
    kind, length = made["sampler"], made["length"]
    if kind == "single":
        return DataLoader(data, batch_size=None, sampler=Backwards(length), **arguments), generator
    if kind == "ragged":
        return DataLoader(data, batch_sampler=Ragged(length, seed), **arguments), generator
    arguments.update(batch_size=made["batch"], drop_last=made["drop_last"])
    if kind == "backwards":
        return DataLoader(data, sampler=Backwards(length), **arguments), generator
    if kind == "failing":
        return DataLoader(data, sampler=Failing(length, length // 2), **arguments), generator
    if kind == "seq" or not length:
        return DataLoader(data, **arguments), generator
    own = generator if kind == "generator" else None
    return DataLoader(data, shuffle=True, generator=own, **arguments), generator


def run(seed: int, live_changes: bool, counts: Counts) -> tuple[list[Any], Any]:
    """All epochs. Returns what came out of each, and the generators' final states."""
    made = plan(seed)
    torch.manual_seed(seed)
    loader, generator = build(made, seed)
    draw = random.Random(seed + 1)
    schedule = Mischief(draw, made["kills"]) if live_changes else rehearsal.Schedule()
    clock = _Clock()
    if made["workers"]:
        rehearsal.rehearse(loader, schedule)
    live = None
    if live_changes:
        transport = MeanTransport(schedule, clock, counts)
        transport.liars = not made[
            "workers"
        ]  # beside stock workers an error is the user's, as in the stock loader
        live = LiveLoader(loader, MeanPool(transport), clock)
    out: list[Any] = []
    for epoch in range(made["epochs"]):
        got: list[Any] = []
        out.append(got)
        try:
            iterator = iter(loader)
        except KeyError as error:
            got.append(repr(error))
            continue
        if live is not None:
            live.bind(iterator)
        batches = 0
        while True:
            if live is not None and draw.random() < made["rate"]:
                _change(live, made, draw, counts)
            try:
                schedule.__dict__["interrupts"] = made["interrupts"]
                batch = next(iterator)
            except StopIteration:
                break
            except _Interrupt:
                counts["interrupted"] += 1
                continue
            except (ValueError, KeyError) as error:
                batch = str(error).splitlines()[-1]
                if made["workers"] and isinstance(error, ValueError):
                    batch = "ValueError"
            finally:
                schedule.__dict__["interrupts"] = 0.0
            got.append(batch)
            if made["in_order"]:
                got.append(torch.rand(()).item())  # the trainer draws, too
            batches += 1
            counts["batches"] += live is not None
            if made["breaks"].get(epoch) == batches:
                break
        del iterator
    if live is not None:
        live.close()
        left = [w for w in live.pool._everyone if not w.ended.is_set()]
        if left:
            raise AssertionError(f"{len(left)} workers left")
    return out, (torch.get_rng_state().tolist(), generator.get_state().tolist())


def _change(live: LiveLoader, made: dict[str, Any], draw: random.Random, counts: Counts) -> None:
    kind = draw.choice(
        ["workers", "workers", "prefetch", "undo", "close"]
        if draw.random() < 0.1
        else ["workers", "prefetch"]
    )
    try:
        if kind == "workers":
            live.request(workers=draw.randint(0, 4))
        elif kind == "prefetch":
            live.request(prefetch=draw.randint(1, 5))
        elif kind == "undo":
            live.undo_all()
        else:
            live.close()
        counts[kind] += 1
    except NotPossible as refusal:
        counts[f"refused: {str(refusal)[:40]}"] += 1


def judge(seed: int, counts: Counts) -> dict[str, int]:
    """Runs one sequence both ways. Returns counts of lost, doubled, reordered and mismatched, all 0
    when fine."""
    made = plan(seed)
    got, state = run(seed, True, counts)
    want, wanted_state = run(seed, False, counts)
    return compare(
        got, want, state == wanted_state or not made["in_order"], made["in_order"], made["breaks"]
    )


def compare(got: Any, want: Any, same_state: bool, in_order: bool, breaks: Any) -> dict[str, int]:
    """What differs, in the words of the benchmark."""
    verdict = {"lost": 0, "doubled": 0, "reordered": 0, "mismatched": int(not same_state)}
    for epoch, (a, b) in enumerate(zip(got, want, strict=True)):
        if a == b:
            continue
        here = collections.Counter(repr(x) for x in a if not isinstance(x, float))
        there = collections.Counter(repr(x) for x in b if not isinstance(x, float))
        if not in_order and (epoch in breaks or here == there):
            verdict["mismatched"] += len(a) != len(b)
            continue
        lost, doubled = there - here, here - there
        verdict["lost"] += sum(lost.values())
        verdict["doubled"] += sum(doubled.values())
        if not lost and not doubled:
            verdict["reordered"] += 1
    return verdict
