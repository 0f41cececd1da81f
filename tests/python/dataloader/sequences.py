"""Random sequences of live changes with real processes, against the undisturbed stock loader.

One seed is one sequence: a loader of some shape, some epochs, random requests between the batches.
Compared are the batches, the trainer's own random draws after each, the final states of all
generators, and what is left behind: child processes, threads, file descriptors, shared memory.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import multiprocessing
import os
import random
import signal
import threading
import time
from multiprocessing import forkserver
from typing import Any

import torch
from adversary import compare
from shapes import Backwards, Items, Ragged, collate, init
from torch.utils.data import DataLoader

from gpuutil.hooks.dataloader.live import LiveLoader, NotPossible

Counts = collections.Counter
LIMIT_SECONDS = 120


def plan(seed: int) -> dict[str, Any]:
    """All that is random about the loader."""
    r = random.Random(seed)
    made: dict[str, Any] = {
        "length": r.choice([0, 1, 5, 23, 40, 60, 90]),
        "batch": r.choice([1, 2, 3, 5]),
        "workers": r.choice([0, 0, 0, 1, 2, 3]),
        "epochs": r.choice([1, 2, 2, 3]),
        "prefetch": r.choice([1, 2, 2, 4]),
        "base": r.choice([0, 0.0005, 0.002]),
        "sampler": r.choice(
            ["seq", "shuffle", "shuffle", "generator", "backwards", "ragged", "single"]
        ),
        "drop_last": r.random() < 0.3,
        "in_order": r.random() > 0.15,
        "collate": r.choice(["default", "own", "own", "lambda" if r.random() < 0.3 else "default"]),
        "init": r.random() < 0.3,
        "persistent": r.random() < 0.25,
        "timeout": r.choice([0, 0, 30]),
        "rate": r.choice([0.1, 0.3, 0.6]),
        "context": r.choice([None] * 7 + ["forkserver"]),
        "kill": r.random() < 0.06,
        "large": r.random() < 0.1,
        "settle": r.random() < 0.7,
    }
    length = made["length"]
    made["bad"] = set(r.sample(range(length), min(length, 3))) if r.random() < 0.25 else set()
    made["slow"] = set(r.sample(range(length), min(length, 3))) if r.random() < 0.4 else set()
    made["breaks"] = {e: r.randint(1, 12) for e in range(made["epochs"]) if r.random() < 0.25}
    if not made["workers"]:
        made.update(persistent=False, timeout=0, context=None)
    if made["timeout"]:
        made["in_order"] = True
    if made["collate"] == "lambda":
        made["context"] = None
    if made["large"]:
        made["length"] = min(length, 23)
    if made["kill"]:
        made.update(length=90, slow=set(), bad=set(), base=0.002, breaks={}, large=False)
    return made


def build(made: dict[str, Any], seed: int) -> tuple[DataLoader, torch.Generator]:
    data = Items(
        made["length"], made["bad"], made["slow"], made["base"], made["init"], made["large"]
    )
    functions = {"default": None, "own": collate, "lambda": lambda items: collate(items)}
    arguments: dict[str, Any] = {
        "num_workers": made["workers"],
        "collate_fn": functions[made["collate"]],
        "worker_init_fn": init if made["init"] else None,
        "timeout": made["timeout"],
        "persistent_workers": made["persistent"],
        "in_order": made["in_order"],
    }
    if made["workers"]:
        arguments.update(prefetch_factor=made["prefetch"], multiprocessing_context=made["context"])
    generator = torch.Generator().manual_seed(seed)
    kind = made["sampler"]
    if kind == "ragged":
        return DataLoader(data, batch_sampler=Ragged(made["length"], seed), **arguments), generator
    if kind == "single":
        arguments["collate_fn"] = None
        return DataLoader(
            data, batch_size=None, sampler=Backwards(made["length"]), **arguments
        ), generator
    arguments.update(batch_size=made["batch"], drop_last=made["drop_last"])
    if kind == "backwards":
        return DataLoader(data, sampler=Backwards(made["length"]), **arguments), generator
    if kind == "seq" or not made["length"]:
        return DataLoader(data, **arguments), generator
    own = generator if kind == "generator" else None
    return DataLoader(data, shuffle=True, generator=own, **arguments), generator


def ids(batch: Any) -> tuple[int, ...]:
    tensor = batch["t"] if isinstance(batch, dict) else batch
    return tuple(tensor.reshape(-1, tensor.shape[-1])[:, 0].tolist())


def run(seed: int, changes: bool, counts: Counts) -> tuple[list[Any], Any]:
    """All epochs. Returns what came out of each, and the generators' final states."""
    made = plan(seed)
    torch.manual_seed(seed)
    random.seed(seed)
    draw = random.Random(seed + 1)
    loader, generator = build(made, seed)
    live = LiveLoader(loader) if changes else None
    out: list[Any] = []
    for epoch in range(made["epochs"]):
        iterator = iter(loader)
        if live is not None:
            live.bind(iterator)
        got: list[Any] = []
        out.append(got)
        batches = 0
        while True:
            if live is not None:
                if draw.random() < made["rate"]:
                    _change(live, made, draw, counts)
                if made["kill"] and draw.random() < 0.05:
                    _kill_added(live, draw, counts)
            begin = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                break
            except ValueError as error:
                if "item" not in str(error):
                    raise
                got.append("ValueError")
            else:
                got.append(ids(batch))
                del batch
            counts["longest_ms"] = max(
                counts["longest_ms"], int((time.perf_counter() - begin) * 1e3)
            )
            if made["in_order"]:
                got.append(round(torch.rand(()).item() + random.random(), 7))
            batches += 1
            if live is not None:
                counts["batches"] += 1
                counts["served"] += live.state.in_flight > 0
            if made["breaks"].get(epoch) == batches:
                break
        if made["bad"]:
            # A caught error makes a cycle of frames and iterator, in the stock loader too; torch
            # then waits five seconds for each worker because the collector may finalise its queues
            # first.
            gc.collect()
        del iterator
    if live is not None:
        for failure in live.state.failures:
            counts[f"start failed: {failure[:60]}"] += 1
        live.close()
    return out, (torch.get_rng_state().tolist(), generator.get_state().tolist(), random.random())


def _change(live: LiveLoader, made: dict[str, Any], draw: random.Random, counts: Counts) -> None:
    kind = draw.choice(
        ["workers", "workers", "prefetch", "prefetch", "undo" if draw.random() < 0.3 else "workers"]
    )
    try:
        if kind == "workers":
            live.request(workers=draw.randint(0 if not made["workers"] else 1, 4))
        elif kind == "prefetch":
            live.request(prefetch=draw.randint(1, 6))
        else:
            live.undo_all()
        counts[kind] += 1
    except NotPossible as refusal:
        counts[f"refused: {str(refusal)[:50]}"] += 1
    if made["settle"]:
        end = (
            time.monotonic() + 5
        )  # the ready reports come in, the admission still happens within next()
        for worker in live.pool.starting:
            while time.monotonic() < end and not worker.poll():
                time.sleep(0.002)


def _kill_added(live: LiveLoader, draw: random.Random, counts: Counts) -> None:
    victims = [w.pid for w in live.pool.ready + live.pool.starting if w.pid]
    if victims:
        # One that was asked to end may be gone by now.
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(victims), signal.SIGKILL)
            counts["killed"] += 1


# ---- what is left behind


class Baseline:
    """What the process has before a sequence; `left` says what is there beyond it."""

    def __init__(self) -> None:
        self.fds = len(os.listdir("/proc/self/fd"))
        self.shm = set(os.listdir("/dev/shm"))

    def left(self) -> list[str]:
        found = [f"child {p.pid}" for p in multiprocessing.active_children()]
        found += [f"child {p} of the fork server" for p in _server_children()]
        found += [
            f"thread {t.name}" for t in threading.enumerate() if t is not threading.main_thread()
        ]
        fds = len(os.listdir("/proc/self/fd"))
        if fds > self.fds:
            found.append(f"{fds - self.fds} file descriptors")
        mine = f"_{os.getpid()}_"
        found += [f"/dev/shm/{n}" for n in set(os.listdir("/dev/shm")) - self.shm if mine in n]
        return found

    def settle(self, seconds: float) -> list[str]:
        end = time.monotonic() + seconds
        while (found := self.left()) and time.monotonic() < end:
            time.sleep(0.01)
        return found


def _server_children() -> list[str]:
    pid = forkserver._forkserver._forkserver_pid
    if pid is None:
        return []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except OSError:
        return []


def warm_up() -> Baseline:
    """Starts what the standard library keeps for good (fork server, resource tracker), then
    counts."""
    context = multiprocessing.get_context("forkserver")
    forkserver.set_forkserver_preload(["torch.utils.data"])
    loader = DataLoader(
        Items(4, set(), set(), 0, False, False), num_workers=1, multiprocessing_context=context
    )
    list(loader)
    for seed in (0, 3):
        run(seed, True, Counts())
    gc.collect()
    time.sleep(0.2)
    return Baseline()


def judge(seed: int, counts: Counts, baseline: Baseline | None) -> dict[str, int]:
    """Runs one sequence both ways. Returns lost, doubled, reordered, mismatched and left, all 0
    when fine."""
    made = plan(seed)
    previous = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(LIMIT_SECONDS)
    try:
        got, state = run(seed, True, counts)
        want, wanted_state = run(seed, False, counts)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    same = state == wanted_state or not made["in_order"]
    verdict = compare(got, want, same, made["in_order"], made["breaks"])
    if baseline is not None:
        left = baseline.settle(10)
        verdict["left"] = len(left)
        for thing in left:
            counts[f"left: {thing}"] += 1
    return verdict


def _hang(*_: Any) -> None:
    raise TimeoutError("the sequence hangs")
