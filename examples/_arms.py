"""Runs a training script without and with gpuutil, in separate processes, by turns.

Each arm is split in two and the order is plain, gpuutil, plain, gpuutil, so that a warm page cache
or a neighbour that comes and goes favours neither.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _entry import ExampleError
from _machine import busy_cpu_seconds, tree_cpu_seconds

QUICK_STEPS = 8
# All runs together, start-up of the processes included: an example takes less than a minute.
_ALL_SECONDS = 56.0
# Importing torch and ending again, until the first run has shown what it takes here.
_START_UP_SECONDS = 3.0
# No run is shorter than this, whatever the start-ups took.
_LEAST_SECONDS = 3.0
# Others in use above this many CPUs spoil a comparison; gpuutil too holds its trials then.
_CROWDED_CPUS = 0.2
# Exit code of a half that could not import gpuutil.
NO_GPUUTIL = 3


def parser(description: str | None, steps: int) -> argparse.ArgumentParser:
    """The options that the examples share.

    Args:
        description: the docstring of the script.
        steps: training steps an arm, where nothing else is asked.
    """
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--steps", type=_positive, help=f"training steps an arm, in two runs (default {steps})"
    )
    options.add_argument(
        "--quick", action="store_true", help="a few small steps: does it run? Measures nothing"
    )
    options.add_argument("--seed", type=int, default=1, help="of data, weights and order")
    options.add_argument(
        "--seconds",
        type=float,
        help=f"limit of all runs together (default {_ALL_SECONDS:g}), or of the one of --arm",
    )
    options.add_argument(
        "--arm", choices=("plain", "gpuutil"), help="only train, here, without or with gpuutil"
    )
    options.add_argument("--json", type=Path, help="where --arm writes what it measured")
    options.set_defaults(default_steps=steps)
    return options


def halves(options: argparse.Namespace) -> int:
    """Halves of an arm: two, or one where nothing is measured anyway."""
    return 1 if options.quick else 2


def total_steps(options: argparse.Namespace) -> int:
    """Training steps of an arm, or of the one run that --arm asks for."""
    return options.steps or (QUICK_STEPS if options.quick else options.default_steps)


@dataclass(frozen=True)
class Half:
    """One half of one arm.

    Attributes:
        result: what the training process wrote (`Recorder.result`).
        foreign_cpus: mean CPUs in use by processes that are none of ours; None if not measured.
        helper_cpu_seconds: CPU seconds of the helper process (a server) meanwhile, None without.
    """

    result: dict[str, Any]
    foreign_cpus: float | None
    helper_cpu_seconds: float | None

    @property
    def steps(self) -> int:
        return len(self.result["step_seconds"])

    @property
    def samples(self) -> int:
        return self.steps * self.result["batch"]


@dataclass(frozen=True)
class Arm:
    """All halves of one arm, put together."""

    halves: list[Half]

    @property
    def samples_per_second(self) -> float:
        """Over the whole arm, `attach`, start-up and trials included."""
        wall = sum(half.result["wall_seconds"] for half in self.halves)
        return sum(half.samples for half in self.halves) / wall

    @property
    def last_third_samples_per_second(self) -> float:
        """Over the last third of each half: after the changes, if there were any."""
        tails = [half.result["step_seconds"][-max(1, half.steps // 3) :] for half in self.halves]
        batch = self.halves[0].result["batch"]
        return batch * sum(map(len, tails)) / sum(map(sum, tails))

    @property
    def cpu_seconds_per_sample(self) -> float | None:
        used = [half.result["cpu_seconds"] for half in self.halves]
        if None in used:
            return None
        return sum(used) / sum(half.samples for half in self.halves)

    @property
    def foreign_cpus(self) -> float | None:
        """The worse half: one disturbed half spoils the comparison."""
        known = [half.foreign_cpus for half in self.halves if half.foreign_cpus is not None]
        return max(known) if len(known) == len(self.halves) else None

    @property
    def loss(self) -> tuple[float, float]:
        """Mean loss of the first and of the last tenth of the steps."""
        losses = [half.result["losses"] for half in self.halves]
        tenth = max(1, min(map(len, losses)) // 10)
        first = [value for half in losses for value in half[:tenth]]
        last = [value for half in losses for value in half[-tenth:]]
        return statistics.fmean(first), statistics.fmean(last)

    @property
    def spread_ratio(self) -> float:
        """How far the runs of this arm lie apart, by their median steps; 0 with one run."""
        medians = [statistics.median(half.result["step_seconds"]) for half in self.halves]
        return max(medians) / min(medians) - 1

    @property
    def kept_changes(self) -> int:
        """Changes that gpuutil kept, in all runs of this arm."""
        acts = [half.result["gpuutil"] for half in self.halves]
        return sum(row["outcome"] == "kept" for act in acts if act for row in act["ledger"])

    def price(self, name: str) -> float:
        """A price of the plain arm (`Recorder.price`), the mean of its halves."""
        return statistics.fmean(half.result["price"][name] for half in self.halves)


@dataclass(frozen=True)
class Comparison:
    """Both arms. `gpuutil` is None where gpuutil is not installed for this Python."""

    plain: Arm
    gpuutil: Arm | None
    steps_wanted: int

    @property
    def arms(self) -> list[Arm]:
        return [self.plain] if self.gpuutil is None else [self.plain, self.gpuutil]

    @property
    def steps_run(self) -> int:
        """Steps of the shortest run: fewer than wanted on a machine too slow for the time."""
        return min(half.steps for arm in self.arms for half in arm.halves)

    @property
    def foreign_cpus(self) -> float | None:
        """The most that others used in any run; None if not measured."""
        known = [arm.foreign_cpus for arm in self.arms]
        return None if None in known else max(known)

    @property
    def crowded(self) -> bool:
        return self.foreign_cpus is not None and self.foreign_cpus > _CROWDED_CPUS


def compare(
    options: argparse.Namespace, script: str, *arguments: str, helper: int | None = None
) -> Comparison:
    """Runs all halves of both arms, by turns, and says on stdout which one is running.

    Args:
        options: parsed options of the example.
        script: the file to run again with `--arm`.
        *arguments: more arguments for it.
        helper: pid of a child of ours that serves the arms.

    Raises:
        ExampleError: a half ended without a result.
    """
    wanted = steps = max(1, total_steps(options) // halves(options))
    arms: dict[str, list[Half]] = {"plain": [], "gpuutil": []}
    if importlib.util.find_spec("gpuutil") is None:
        del arms["gpuutil"]
    order = list(arms) * halves(options)
    end = time.monotonic() + (options.seconds or _ALL_SECONDS)
    start_up = _START_UP_SECONDS
    for number, arm in enumerate(order):
        if arm not in arms:
            continue
        what = "with gpuutil.attach(model)" if arm == "gpuutil" else "without gpuutil"
        print(f"run {number + 1} of {len(order)}: {what}", flush=True)
        begin = time.monotonic()
        seconds = max(_LEAST_SECONDS, (end - begin) / (len(order) - number) - start_up)
        half = _run_half(options, script, arm, steps, seconds, arguments, helper)
        if half is None:
            del arms["gpuutil"]
            continue
        arms[arm].append(half)
        start_up = time.monotonic() - begin - half.result["wall_seconds"]
        # A machine too slow for the time has said so in its first run: the others follow it.
        steps = half.steps if number == 0 else steps
    gpuutil = Arm(arms["gpuutil"]) if arms.get("gpuutil") else None
    return Comparison(Arm(arms["plain"]), gpuutil, steps_wanted=wanted)


def _run_half(
    options: argparse.Namespace,
    script: str,
    arm: str,
    steps: int,
    seconds: float,
    arguments: tuple[str, ...],
    helper: int | None,
) -> Half | None:
    """Runs one half in a process of its own; None where it could not import gpuutil."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, script, "--arm", arm, "--steps", str(steps)]
        command += ["--seconds", str(seconds), "--seed", str(options.seed)]
        command += ["--json", str(result), *arguments, *(["--quick"] if options.quick else [])]
        before, clock = _cpu_readings(helper), time.monotonic()
        code = subprocess.run(command, check=False).returncode
        after, elapsed = _cpu_readings(helper), time.monotonic() - clock
        if code == NO_GPUUTIL:
            return None
        if code != 0 or not result.exists():
            # Its own traceback is on stderr already.
            raise ExampleError(f"the {arm} run ended with exit code {code} and no result")
        busy, ours, helped = (
            None if new is None or old is None else new - old
            for new, old in zip(after, before, strict=True)
        )
        # Ticks of 10 ms on both sides: a little below zero is zero.
        foreign = None if busy is None or ours is None else max(0.0, busy - ours) / elapsed
        return Half(json.loads(result.read_text()), foreign, helped)


def _cpu_readings(helper: int | None) -> tuple[float | None, float | None, float | None]:
    return (
        busy_cpu_seconds(),
        tree_cpu_seconds(os.getpid()),
        None if helper is None else tree_cpu_seconds(helper),
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
