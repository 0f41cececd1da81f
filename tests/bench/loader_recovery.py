"""How near live tuning comes to the best setting that a full grid finds, and how soon.

    python tests/bench/loader_recovery.py [--quick] [--only NAME]

For each workload a grid over workers x prefetch x main threads x persistent is run, every point in a process of its
own. The winner is picked on one half of its points' steps and then measured anew, interleaved with
`apply="auto"` runs that start from num_workers=0 and torch's own thread count. Keys: workloads[{name, best_grid,
reached (samples/s), fraction_of_best, fraction_low (95 %), seconds_to_95, steps_to_95, excess_stall_ms,
excess_stall_of_best_ms (the winner's own, which nobody touches), stall_bound_ms}]; `aa_ratio` is the winner's first
repeats against its second ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import bootstrap_ratio, finish, median, quantile, say

HERE = Path(__file__).parent
NAMES = ["cpu_decode", "latency", "variance", "short_epochs", "mixed"]


def run(workload: str, seconds: float, **setting) -> dict:
    """One run in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "record.json"
        command = [sys.executable, str(HERE / "_workloads.py"), workload, "--out", str(out)]
        command += ["--seconds", str(seconds)]
        for key, value in setting.items():
            if value is True:
                command.append(f"--{key}")
            elif value:
                command += [f"--{key}", str(value)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def rates(record: dict, begin: float, end: float, slices: int = 8) -> list[float]:
    """Samples a second in equal slices of the span [begin, end] (shares of the run)."""
    steps = record["steps_ns"]
    first, last = steps[-1] * begin, steps[-1] * end
    width = (last - first) / slices
    counts = [0] * slices
    for moment in steps:
        if first <= moment < last:
            counts[int((moment - first) / width)] += 1
    return [count * record["samples"] / (width / 1e9) for count in counts]


def grid(name: str, quick: bool) -> list[dict]:
    cores = len(os.sched_getaffinity(0))
    latency = name in ("latency", "mixed")
    workers = [0, 1, cores] if quick else [0, 1, 2, 3, 4, *([8, 12, 16] if latency else [])]
    points = []
    for count, prefetch, threads, persistent in itertools.product(
        workers, [2] if quick else [2, 4], sorted({1, cores}), [False, True]
    ):
        if count == 0 and (prefetch != 2 or persistent):
            continue
        if persistent and name != "short_epochs":
            continue
        points.append(dict(workers=count, prefetch=prefetch, threads=threads, persistent=persistent))
    return points


def excess_stall(record: dict) -> tuple[float, float]:
    """(worst excess of a next() over the p99 of the ones before it, what is allowed), milliseconds."""
    durations = [duration / 1e6 for _, duration in record["fetches_ns"]]
    steps = [b - a for a, b in zip(record["steps_ns"], record["steps_ns"][1:])]
    worst = 0.0
    for index in range(20, len(durations)):
        worst = max(worst, durations[index] - quantile(durations[:index], 0.99))
    return worst, max(30.0, median(steps) / 1e6, 15.0 * record["rss_bytes"] / 1e9)


def time_to(record: dict, target: float) -> tuple[float | None, int | None]:
    """Seconds and steps until the rate over the next 16 steps first reaches `target` samples a second."""
    steps, window = record["steps_ns"], 16
    for index in range(len(steps) - window):
        rate = window * record["samples"] / ((steps[index + window] - steps[index]) / 1e9)
        if rate >= target:
            return steps[index] / 1e9, index
    return None, None


def recover(name: str, quick: bool) -> dict:
    seconds, repeats, ours_seconds = (3.0, 1, 10.0) if quick else (6.0, 4, 45.0)
    tried = []
    for point in grid(name, quick):
        record = run(name, seconds, **point)
        tried.append((median(rates(record, 0.25, 0.6)), point))
        say(f"{name}: {point} {tried[-1][0]:.0f} samples/s")
    best_rate, best = max(tried, key=lambda pair: pair[0])
    theirs, ours, records, again, undisturbed = [], [], [], [], []
    for repeat in range(repeats):
        undisturbed.append(run(name, max(seconds, 8.0) if quick else ours_seconds / 2, **best))
        reference = rates(undisturbed[-1], 0.3, 1.0)
        (theirs if repeat % 2 == 0 or repeats == 1 else again).extend(reference)
        records.append(run(name, ours_seconds, apply="auto"))
        ours.extend(rates(records[-1], 0.6, 1.0))
        say(f"{name}: best {median(reference):.0f}, ours {median(ours):.0f} samples/s")
    everything = theirs + again
    low, mid, _ = bootstrap_ratio(ours, everything)
    reach = [time_to(record, 0.95 * median(everything)) for record in records]
    stalls = [excess_stall(record) for record in records]
    changes = [row for row in records[-1].get("ledger", []) if row["outcome"] == "kept"]
    return {
        "name": name,
        "best_grid": {**best, "samples_per_second": round(median(everything), 1)},
        "reached": round(median(ours), 1),
        "fraction_of_best": round(mid, 4),
        "fraction_low": round(low, 4),
        "seconds_to_95": [None if s is None else round(s, 1) for s, _ in reach],
        "steps_to_95": [n for _, n in reach],
        "excess_stall_ms": round(max(worst for worst, _ in stalls), 1),
        "excess_stall_of_best_ms": round(max(excess_stall(record)[0] for record in undisturbed), 1),
        "stall_bound_ms": round(min(bound for _, bound in stalls), 1),
        "aa_ratio": round(median(again) / median(theirs), 4) if again else None,
        "kept": [[[c["remedy"], c["to"]] for c in row.get("changes", [])] for row in changes],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small workload: shows that it works")
    parser.add_argument("--only", choices=NAMES)
    options = parser.parse_args()
    names = [options.only] if options.only else (["latency"] if options.quick else NAMES)
    finish({"workloads": [recover(name, options.quick) for name in names]})


if __name__ == "__main__":
    main()
