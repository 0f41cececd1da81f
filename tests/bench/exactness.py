"""Random sequences of live changes to a running DataLoader, compared with the undisturbed stock
loader.

    python tests/bench/exactness.py [--quick | --long] [--seed N]

Two transports: 20,000 sequences on workers that live in this process and mean harm (any order of
answers, repeats, answers of earlier generations, deaths, Ctrl-C), and 300 with real processes
(2,000 with --long). All of `lost`, `doubled`, `reordered`, `mismatched` and `left` have to be 0.
"""

from __future__ import annotations

import argparse
import collections
import gc
import sys
import time
import traceback
import warnings
from pathlib import Path

from _measure import finish, say

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "dataloader"))

KINDS = ("lost", "doubled", "reordered", "mismatched", "left")


def many(name, judge, first, count, plan):
    """Runs `count` sequences from seed `first`. Returns the sums."""
    sums = dict.fromkeys(KINDS, 0)
    counts: collections.Counter = collections.Counter()
    begin = said = time.monotonic()
    for seed in range(first, first + count):
        try:
            verdict = judge(seed, counts)
        except Exception:
            verdict = {"mismatched": 1}
            say(traceback.format_exc())
        if any(verdict.values()):
            say(f"{name}: seed {seed}: {verdict} {plan(seed)}")
        for kind, value in verdict.items():
            sums[kind] += value
        if time.monotonic() - said > 10:
            said = time.monotonic()
            say(f"{name}: {seed - first + 1} of {count} sequences, {said - begin:.0f} s, {sums}")
    seconds = round(time.monotonic() - begin, 1)
    say(f"{name}: {dict(counts)}")
    return {"sequences": count, **sums, "batches": counts["batches"], "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--quick", action="store_true", help="a few sequences, to see that it works"
    )
    parser.add_argument("--long", action="store_true", help="2,000 sequences with real processes")
    parser.add_argument("--seed", type=int, default=1_000_000, help="first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import adversary
    import sequences

    played = 300 if options.quick else 20_000
    real = 6 if options.quick else 2_000 if options.long else 300
    in_process = many("in-process", adversary.judge, options.seed, played, adversary.plan)
    baseline = sequences.warm_up()

    def judge(seed, counts):
        nonlocal baseline
        verdict = sequences.judge(seed, counts, baseline)
        if verdict["left"]:
            gc.collect()
            baseline = sequences.Baseline()  # reported once, not with every seed that follows
        return verdict

    processes = many("processes", judge, options.seed, real, sequences.plan)
    total = {kind: in_process[kind] + processes[kind] for kind in ("sequences", *KINDS)}
    finish({**total, "transports": {"in_process": in_process, "processes": processes}})
    return int(any(total[kind] for kind in KINDS))


if __name__ == "__main__":
    sys.exit(main())
