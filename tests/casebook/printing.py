"""The results as people and as programs read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from . import figures
from .runner import CaseResult


def as_json(cases: Sequence[CaseResult]) -> dict[str, Any]:
    """The summary, and of each case its figures and its runs."""
    return {"summary": figures.summary(cases), "cases": [_case(case) for case in cases]}


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "script": case.truth.script,
        "casebook": case.truth.casebook,
        "accepted": list(case.truth.finds),
        "top": dict(figures.tops(case)),
        "misleading": figures.misleading(case),
        "kept": dict(figures.kept(case)),
        "kept_refused": figures.kept_what_is_refused(case),
        "samples_per_second": {arm: figures.rate(case, arm) for arm in case.runs},
        "live_speedup": figures.speedup(case, "live"),
        "by_hand_speedup": figures.speedup(case, "by_hand"),
        "share_of_hand_fix": figures.share_of_hand_fix(case),
        "slower_keep": figures.slower_keep(case),
        "mismatches": figures.mismatches(case),
        "unrepeatable": figures.unrepeatable(case),
        "failures": case.failures,
        "runs": {arm: [_run(run) for run in runs] for arm, runs in case.runs.items()},
    }


def _run(run: Any) -> dict[str, Any]:
    values = dataclasses.asdict(run)
    values["findings"] = [
        {key: finding.get(key) for key in ("id", "severity", "gain_ratio", "title")}
        for finding in run.findings
    ]
    keys = ("remedy", "class", "finding", "changes", "speedup", "outcome", "conclusion", "in_force")
    values["ledger"] = [{key: row.get(key) for key in keys} for row in run.ledger]
    return values


def as_text(cases: Sequence[CaseResult]) -> str:
    lines = ["Case -> top finding of each watched run (x: not one that is accepted)", ""]
    for case in cases:
        lines.append(_confusion_line(case))
    lines += ["", "Live, and by hand, against plain", ""]
    for case in cases:
        lines.append(_speed_line(case))
    lines += ["", *_notes(cases), "", *_summary_lines(figures.summary(cases))]
    return "\n".join(lines)


def _confusion_line(case: CaseResult) -> str:
    accepted = case.truth.finds or (figures.NOTHING,)
    found = ", ".join(
        f"{'' if name in accepted else 'x '}{name}" + (f" {count} times" if count > 1 else "")
        for name, count in figures.tops(case).most_common()
    )
    reference = case.truth.casebook or "healthy"
    return f"  {case.truth.script:20} {reference:10} {found or 'no run'}"


def _speed_line(case: CaseResult) -> str:
    live, by_hand = figures.speedup(case, "live"), figures.speedup(case, "by_hand")
    share = figures.share_of_hand_fix(case)
    remedies = ", ".join(sorted(figures.kept(case))) or "nothing kept"
    if figures.kept(case) and case.truth.remedies and not figures.kept_a_remedy_that_counts(case):
        remedies += " (not what would mend it)"
    return (
        f"  {case.truth.script:20} {_ratio(live):>7} {_ratio(by_hand):>7} "
        f"{'' if share is None else f'{share:.0%}':>6}  {remedies}"
    )


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _notes(cases: Sequence[CaseResult]) -> list[str]:
    """What no run should show, a line each."""
    lines = []
    for case in cases:
        name = case.truth.script
        if case.truth.healthy and figures.false_alarms(case)[0]:
            runs = [*case.runs.get("watched", ()), *case.runs.get("live", ())]
            ids = sorted({warning for run in runs for warning in figures.warnings(run)})
            lines.append(f"  false alarm: {name}: {', '.join(ids)}")
        for what in figures.misleading(case):
            lines.append(f"  misleading: {name}: {what}")
        if figures.slower_keep(case):
            lines.append(f"  kept and slower: {name}")
        for what in figures.kept_what_is_refused(case):
            lines.append(f"  kept though it must not be: {name}: {what}")
        for what in figures.mismatches(case):
            lines.append(f"  not bit-identical: {name}: {what}")
        for what in figures.unrepeatable(case):
            lines.append(f"  differs between plain runs: {name}: {what}")
        for what in case.failures:
            lines.append(f"  failed: {name}: {what.splitlines()[-1]}")
    return lines or ["  nothing misleading, slower, or different"]


def _summary_lines(figures_of_all: dict[str, Any]) -> list[str]:
    return [
        f"  {key:26} {'not measured' if value is None else f'{value:.3f}'.removesuffix('.000')}"
        for key, value in figures_of_all.items()
    ]
