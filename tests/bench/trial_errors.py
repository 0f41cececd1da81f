"""How often does a trial keep what gains nothing, and how often does it keep a true gain?

    python tests/bench/trial_errors.py [--quick]

The trial code that runs in training, on step times recorded from three real loops (`data/`:
autocorrelated, with spikes, with drift). Each trial starts at a random place of a series, which is
read in a circle; with the change in force a step takes 1 / (1 + gain) of what was recorded. Half of
the trials may flip the change every few steps, half may not.
Keys: false_keep_ratio (of trials without a gain), true_keep_ratio (of trials at 5 %), median_steps
(over all trials), aa_mid_ratio (median speed-up found where there is none), detail (by series, gain
and kind).
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from _measure import finish, median, say

from gpuutil import _core

_DATA = pathlib.Path(__file__).parent / "data"
_SERIES = ("autocorrelated", "spikes", "drift")
_GAINS = (0.0, 0.03, 0.05, 0.10)
_TRUE_GAIN = 0.05


def read(name: str) -> list[float]:
    """Step times in seconds; the file holds microseconds, one a line, and comments."""
    lines = (_DATA / f"{name}.txt").read_text().splitlines()
    return [float(line) * 1e-6 for line in lines if line and not line.startswith("#")]


def trials(
    name: str, series: list[float], gain: float, cheap_flip: bool, count: int
) -> dict[str, Any]:
    """`count` trials of one kind."""
    results = [_core.simulate_trial(series, gain, seed, cheap_flip) for seed in range(1, count + 1)]
    outcomes = [result["outcome"] for result in results]
    speedups = [result["speedup"] for result in results if result["speedup"] is not None]
    return {
        "series": name,
        "gain": gain,
        "cheap_flip": cheap_flip,
        "trials": count,
        "kept": outcomes.count("kept"),
        "undone": outcomes.count("undone"),
        "inconclusive": outcomes.count("inconclusive"),
        "median_steps": median([result["steps"] for result in results]),
        "steps": [result["steps"] for result in results],
        "mid_ratio": median([mid for _, mid, _ in speedups]),
        "covered_ratio": sum(low <= 1 + gain <= high for low, _, high in speedups) / len(speedups),
    }


def kept_ratio(rows: list[dict[str, Any]], gain: float) -> float:
    chosen = [row for row in rows if row["gain"] == gain]
    return sum(row["kept"] for row in chosen) / sum(row["trials"] for row in chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few trials: shows that it works")
    count = 100 if parser.parse_args().quick else 1000
    rows = []
    for name in _SERIES:
        series = read(name)
        for cheap_flip in (False, True):
            for gain in _GAINS:
                row = trials(name, series, gain, cheap_flip, count)
                rows.append(row)
                kind = "cheap" if cheap_flip else "dear"
                say(
                    f"{name:15} gain {gain:4.0%} {kind:5}: kept {row['kept']} of {count},"
                    f" {row['median_steps']:.0f} steps"
                )
    steps = [value for row in rows for value in row.pop("steps")]
    finish(
        {
            "false_keep_ratio": kept_ratio(rows, 0.0),
            "true_keep_ratio": kept_ratio(rows, _TRUE_GAIN),
            "median_steps": median(steps),
            "aa_mid_ratio": median([row["mid_ratio"] for row in rows if row["gain"] == 0.0]),
            "trials": len(steps),
            "detail": rows,
        }
    )


if __name__ == "__main__":
    main()
