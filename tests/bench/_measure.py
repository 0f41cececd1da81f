"""Shared by the benchmarks: progress to stderr, one JSON object as the last line, robust figures."""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Any


def say(text: str) -> None:
    """Progress, to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def finish(result: dict[str, Any]) -> None:
    """The result, as the last line of stdout."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def quantile(values: Sequence[float], q: float) -> float:
    """Linear interpolation between order statistics."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def bootstrap_ratio(
    a: Sequence[float], b: Sequence[float], rounds: int = 2000, seed: int = 1, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(low, mid, high) of median(a) / median(b), values resampled independently."""
    draw = random.Random(seed)
    ratios = sorted(
        median(draw.choices(a, k=len(a))) / median(draw.choices(b, k=len(b))) for _ in range(rounds)
    )
    tail = (1 - confidence) / 2
    return quantile(ratios, tail), median(a) / median(b), quantile(ratios, 1 - tail)


def bootstrap_quantile_ratio(
    a: Sequence[float], b: Sequence[float], q: float = 0.25, rounds: int = 2000, seed: int = 1,
    confidence: float = 0.95,
) -> tuple[float, float, float]:
    """(low, mid, high) of the q-quantile of a over that of b, pairs resampled together.

    For block times on a machine that others use: they only ever make a block longer, so the lower part of each arm
    is what the code itself takes.
    """  # fmt: skip
    draw = random.Random(seed)
    pairs = list(zip(a, b, strict=True))

    def ratio(chosen: Sequence[tuple[float, float]]) -> float:
        return quantile([x for x, _ in chosen], q) / quantile([y for _, y in chosen], q)

    ratios = sorted(ratio(draw.choices(pairs, k=len(pairs))) for _ in range(rounds))
    tail = (1 - confidence) / 2
    return quantile(ratios, tail), ratio(pairs), quantile(ratios, 1 - tail)


def bootstrap_median(
    values: Sequence[float], rounds: int = 2000, seed: int = 1, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(low, mid, high) of the median; for ratios of neighbours in time, which drift leaves alone."""
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(rounds))
    tail = (1 - confidence) / 2
    return quantile(medians, tail), median(values), quantile(medians, 1 - tail)
