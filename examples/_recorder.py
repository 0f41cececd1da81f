"""What a training script writes down about itself: step times, CPU time, loss, gpuutil's acts.

The training loop calls `start` once, `step` at the end of each step, and goes on while `running`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.data import Dataset

from _arms import NO_GPUUTIL, total_steps
from _machine import tree_cpu_seconds


class _Round(NamedTuple):
    """One batch made and trained on, part by part."""

    items_seconds: float
    items_cpu_seconds: float
    train_seconds: float


def run_arm(options: argparse.Namespace, batch: int, train: Callable[[Recorder], None]) -> int:
    """Trains once, in this process, and writes down what it took.

    Args:
        options: parsed options, with `arm` set.
        batch: samples a step.
        train: the training script.

    Returns:
        The exit code of the process.
    """
    recorder = Recorder(options, batch)
    try:
        train(recorder)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "gpuutil":
            raise
        print(f"gpuutil cannot be imported: {error}", file=sys.stderr)
        return NO_GPUUTIL
    recorder.write(options.json)
    return 0


class Recorder:
    """Measures one half of an arm and decides when it is over.

    Attributes:
        with_gpuutil: whether this arm calls `gpuutil.attach(model)`.
        monitor: what `attach` returned, set by the training script.
        running: false after enough steps, or when the time is up.
    """

    def __init__(self, options: argparse.Namespace, batch: int) -> None:
        self.with_gpuutil = options.arm == "gpuutil"
        self.monitor: Any = None
        self.running = True
        self._steps = total_steps(options)
        self._limit_seconds = math.inf if options.seconds is None else options.seconds
        self._batch = batch
        self._ends: list[float] = []
        self._losses: list[float] = []
        self._start = 0.0
        self._start_cpu: float | None = None
        self._end_cpu: float | None = None
        self._price: dict[str, float] | None = None

    def start(self) -> None:
        """Call it before `attach`: what gpuutil costs belongs to its arm."""
        self._start_cpu = tree_cpu_seconds(os.getpid())
        self._start = time.perf_counter()

    def step(self, loss: float) -> None:
        """Ends a step of this loss."""
        now = time.perf_counter()
        self._ends.append(now)
        self._losses.append(loss)
        self.running = len(self._ends) < self._steps and now - self._start < self._limit_seconds
        if not self.running:
            self._end_cpu = tree_cpu_seconds(os.getpid())

    def price(self, dataset: Dataset, train_step: Callable[[], Any]) -> None:
        """Prices the parts of a step after the run: the items, and the training.

        They take turns as in the loop, since each finds the caches as the other left them.

        Args:
            dataset: makes the items, as for the loader.
            train_step: one step on a batch that is there already.
        """
        threads = torch.get_num_threads()
        rounds = [*self._rounds(dataset, train_step)]
        torch.set_num_threads(1)
        one_thread = [*self._rounds(dataset, train_step)]
        torch.set_num_threads(threads)
        both = rounds + one_thread
        self._price = {
            "items": (len(both) + 2) * self._batch,  # with those that warm up
            "item_seconds": statistics.median(one.items_seconds for one in both) / self._batch,
            "item_cpu_seconds": statistics.median(one.items_cpu_seconds for one in both)
            / self._batch,
            "trainer_seconds": statistics.median(one.train_seconds for one in rounds),
            "trainer_one_thread_seconds": statistics.median(
                one.train_seconds for one in one_thread
            ),
        }

    def _rounds(self, dataset: Dataset, train_step: Callable[[], Any]) -> Iterator[_Round]:
        """Half a dozen rounds, or those that fit into a second, and one before to warm up."""
        end = time.perf_counter() + 1
        for number in range(7):
            clock, cpu = time.perf_counter(), time.thread_time()
            for index in range(number * self._batch, (number + 1) * self._batch):
                dataset[index % len(dataset)]
            cpu = time.thread_time() - cpu
            middle = time.perf_counter()
            train_step()
            now = time.perf_counter()
            if number:
                yield _Round(middle - clock, cpu, now - middle)
            if number and now > end:
                return

    def result(self) -> dict[str, Any]:
        """The measurements as plain JSON; seconds throughout, null where not measured."""
        starts = [self._start, *self._ends]
        measured_cpu = self._start_cpu is not None and self._end_cpu is not None
        return {
            "arm": "gpuutil" if self.with_gpuutil else "plain",
            "batch": self._batch,
            "wall_seconds": self._ends[-1] - self._start,
            "step_seconds": [end - begin for begin, end in itertools.pairwise(starts)],
            "cpu_seconds": self._end_cpu - self._start_cpu if measured_cpu else None,
            "losses": self._losses,
            "price": self._price,
            "gpuutil": _acts(self.monitor) if self.monitor is not None else None,
        }

    def write(self, path: Path | None) -> None:
        """Writes the result for the parent, or says it in a line to somebody who runs one arm."""
        result = self.result()
        if path is not None:
            path.write_text(json.dumps(result, default=str))
            return
        done = len(result["step_seconds"])
        pace = done * self._batch / result["wall_seconds"]
        print(f"{done} steps in {result['wall_seconds']:.1f} s, {pace:.1f} samples/s")


def _acts(monitor: Any) -> dict[str, Any]:
    """What gpuutil found and did, as plain dicts with the keys of its report.json."""
    return {
        "findings": [_plain(finding) for finding in monitor.findings],
        "ledger": [_plain(entry) for entry in monitor.ledger],
        "recipe": str(monitor.recipe() or ""),
    }


def _plain(entry: Any) -> dict[str, Any]:
    return entry.to_dict() if hasattr(entry, "to_dict") else dict(entry)
