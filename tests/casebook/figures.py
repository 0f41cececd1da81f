"""The arithmetic of the casebook: pure functions of results, no process is started here."""

from __future__ import annotations

import collections
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from .runner import CaseResult, RunResult

NOTHING = "-"
"""Stands for 'no finding' in the confusion table."""

_CLASSES = ("exact", "rounding", "distribution", "precision", "semantics")
# A gain by hand below this leaves no share worth measuring.
_LEAST_HAND_GAIN = 1.10
# All live runs this much behind all plain ones: more than two runs of one script differ by.
_SLOWER = 0.97


def wilson(hits: int, count: int, z: float = 1.959964) -> tuple[float, float]:
    """95 % bounds of a share, after Wilson (1927): they hold for few trials and at the ends.

    Args:
        hits: trials that came out, at most `count`.
        count: all trials; with none, nothing is known and the bounds are 0 and 1.
    """
    if count == 0:
        return 0.0, 1.0
    share, unit = hits / count, z * z / count
    middle = share + unit / 2
    reach = z * math.sqrt(share * (1 - share) / count + unit / (4 * count))
    return max(0.0, (middle - reach) / (1 + unit)), min(1.0, (middle + reach) / (1 + unit))


def warnings(run: RunResult) -> list[str]:
    """Ids of the findings of a run that say that something is the matter, best first."""
    return [f["id"] for f in run.findings if f["severity"] != "info"]


def top_finding(case: CaseResult, run: RunResult) -> str:
    """The first finding; of a healthy script only where it is a warning."""
    ids = warnings(run) if case.truth.healthy else [f["id"] for f in run.findings]
    return ids[0] if ids else NOTHING


def tops(case: CaseResult) -> collections.Counter[str]:
    """The row of the confusion table: top findings of the watched runs, and how often each came."""
    return collections.Counter(top_finding(case, run) for run in case.runs.get("watched", ()))


def hits(case: CaseResult) -> tuple[int, int]:
    """(watched runs whose top finding is accepted, watched runs). Missing runs count as missed."""
    accepted = case.truth.finds
    found = tops(case)
    failed = sum(text.startswith(("watched:", "making")) for text in case.failures)
    return sum(found[name] for name in accepted), sum(found.values()) + failed


def false_alarms(case: CaseResult) -> tuple[int, int]:
    """(runs of a healthy script with a warning, its runs), watched and live."""
    runs = [*case.runs.get("watched", ()), *case.runs.get("live", ())]
    return sum(bool(warnings(run)) for run in runs), len(runs)


def misleading(case: CaseResult) -> list[str]:
    """Warnings that the truth forbids."""
    came = {name for run in case.runs.get("watched", ()) for name in warnings(run)}
    return sorted(came & set(case.truth.never))


def kept(case: CaseResult) -> collections.Counter[str]:
    """Changes kept in the live runs: "loader_workers + main_threads" -> in how many rows."""
    return collections.Counter(
        row["remedy"]
        for run in case.runs.get("live", ())
        for row in run.ledger
        if row["outcome"] == "kept"
    )


def kept_remedies(case: CaseResult) -> set[str]:
    return {part for name in kept(case) for part in name.split(" + ")}


def kept_a_remedy_that_counts(case: CaseResult) -> bool:
    return bool(kept_remedies(case) & set(case.truth.remedies))


def kept_what_is_refused(case: CaseResult) -> list[str]:
    return sorted(kept_remedies(case) & set(case.truth.refused))


def rate(case: CaseResult, arm: str) -> float | None:
    """Median samples a second of an arm."""
    runs = case.runs.get(arm)
    return statistics.median(run.rate for run in runs) if runs else None


def speedup(case: CaseResult, arm: str) -> float | None:
    plain, other = rate(case, "plain"), rate(case, arm)
    return None if plain is None or other is None else other / plain


def slower_keep(case: CaseResult) -> bool:
    """Something was kept, and even the best live run stays behind the worst plain one."""
    plain, live = case.runs.get("plain"), case.runs.get("live")
    if not plain or not live or not kept(case):
        return False
    return max(run.rate for run in live) < _SLOWER * min(run.rate for run in plain)


def share_of_hand_fix(case: CaseResult) -> float | None:
    """Live gain over the gain by hand.

    None where no remedy can do what the hand does, or where that gains too little.
    """
    by_hand, live = speedup(case, "by_hand"), speedup(case, "live")
    if not case.truth.fix_is_live or by_hand is None or live is None or by_hand < _LEAST_HAND_GAIN:
        return None
    return (live - 1) / (by_hand - 1)


def announced(ledger: Iterable[dict[str, Any]]) -> str:
    """The widest class of anything that was tried."""
    classes = [row["class"] for row in ledger if row["outcome"] != "refused"]
    return max(classes, key=_CLASSES.index, default="exact")


def mismatches(case: CaseResult) -> list[str]:
    """Checksums that differ from the plain runs', unannounced, where the truth wants them equal.

    Where the plain runs differ among themselves, there is nothing to compare with.
    """
    found = []
    for what, wanted, allowed in (
        ("order", case.truth.same_order, ("exact", "rounding")),
        ("parameters", case.truth.same_parameters, ("exact",)),
    ):
        plain = {getattr(run, what) for run in case.runs.get("plain", ())}
        if not wanted or len(plain) != 1:
            continue
        for arm in ("watched", "live"):
            for run in case.runs.get(arm, ()):
                if getattr(run, what) not in plain and announced(run.ledger) in allowed:
                    found.append(f"{what} ({arm})")
    return found


def unrepeatable(case: CaseResult) -> list[str]:
    """Checksums that differ between plain runs."""
    return [
        what
        for what in ("order", "parameters")
        if len({getattr(run, what) for run in case.runs.get("plain", ())}) > 1
    ]


def summary(cases: Sequence[CaseResult]) -> dict[str, Any]:
    """The figures of all cases together; None where no case says anything about it."""
    sick = [hits(case) for case in cases if not case.truth.healthy]
    right, asked = sum(h for h, _ in sick), sum(n for _, n in sick)
    healthy = [false_alarms(case) for case in cases if case.truth.healthy]
    alarms, quiet = sum(a for a, _ in healthy), sum(n for _, n in healthy)
    shares = [s for s in map(share_of_hand_fix, cases) if s is not None]
    return {
        "cases": len(cases),
        "top1_ratio": right / asked if asked else None,
        "top1_low": wilson(right, asked)[0] if asked else None,
        "false_alarm_ratio": alarms / quiet if quiet else None,
        "false_alarm_high": wilson(alarms, quiet)[1] if quiet else None,
        "misleading": sum(len(misleading(case)) for case in cases),
        "slower_keeps": sum(map(slower_keep, cases)),
        "refused_keeps": sum(len(kept_what_is_refused(case)) for case in cases),
        "checksum_mismatches": sum(len(mismatches(case)) for case in cases),
        "median_share_of_hand_fix": statistics.median(shares) if shares else None,
        "min_share": min(shares) if shares else None,
        "shares": len(shares),
        "failures": sum(len(case.failures) for case in cases),
    }
