"""Random sequences on workers that mean harm; `tests/bench/exactness.py` runs more of them."""

from __future__ import annotations

import collections
import warnings

import adversary
import pytest


def _run(seeds):
    counts: collections.Counter = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            verdict = adversary.judge(seed, counts)
            assert not any(verdict.values()), (seed, verdict, adversary.plan(seed))
    return counts


def test_two_thousand_random_sequences_lose_double_and_reorder_nothing():
    counts = _run(range(100_000, 102_000))
    for kind in (
        "killed",
        "repeated",
        "late",
        "interrupted",
        "failed in a worker only",
        "close",
        "undo",
    ):
        assert counts[kind] > 5, (kind, counts)
    assert counts["batches"] > 10_000


@pytest.mark.parametrize(
    "seed",
    [
        168,  # Ctrl-C between torch's queue and the conveyor: the answer has to survive
        194,
        1576,  # an added worker dies with the last batch after the sampler's end: sent again
        2610,
        101_105,  # two Ctrl-C: second answers of the first hand-back meet the second one
    ],
)
def test_a_sequence_that_once_failed_is_exact(seed):
    _run([seed])
