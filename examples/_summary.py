"""Prints what a comparison of two arms showed, and what it did not. At most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from _arms import Arm, Comparison

_WIDTH = 100
# A ratio of two short runs on a shared machine is not known better than this.
_NOISE_RATIO = 0.05


def say(text: str = "", indent: int = 0) -> None:
    """One paragraph, wrapped; the second line on goes in by two more columns."""
    print(
        textwrap.fill(
            text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2)
        )
    )


def print_table(comparison: Comparison, sample: str) -> None:
    """Throughput, CPU, neighbours and loss of both arms, side by side.

    Args:
        comparison: both arms.
        sample: what one sample is called, in the singular.
    """
    plain, fast = comparison.plain, comparison.gpuutil
    say()
    print(f"{'':34}{'plain':>14}{'gpuutil':>14}{'ratio':>10}")
    _row(f"{sample}s/s, whole arm", plain, fast, lambda arm: arm.samples_per_second, ".1f")
    _row(
        f"{sample}s/s, last third",
        plain,
        fast,
        lambda arm: arm.last_third_samples_per_second,
        ".1f",
    )
    _row(
        f"CPU ms per {sample}",
        plain,
        fast,
        lambda arm: _times(1e3, arm.cpu_seconds_per_sample),
        ".2f",
    )
    _row("CPUs in use by others", plain, fast, lambda arm: arm.foreign_cpus, ".2f", ratio=False)
    _row("loss, first tenth", plain, fast, lambda arm: arm.loss[0], ".3f", ratio=False)
    _row("loss, last tenth", plain, fast, lambda arm: arm.loss[1], ".3f", ratio=False)


def _row(
    title: str,
    plain: Arm,
    fast: Arm | None,
    value: Callable[[Arm], float | None],
    form: str,
    ratio: bool = True,
) -> None:
    left, right = value(plain), value(fast) if fast else None
    cells = ["not measured" if left is None else format(left, form)]
    cells.append("-" if fast is None else "not measured" if right is None else format(right, form))
    quotient = f"{right / left:.2f}x" if ratio and left and right is not None else ""
    print(f"  {title:32}{cells[0]:>14}{cells[1]:>14}{quotient:>10}".rstrip())


def print_acts(arm: Arm) -> None:
    """What gpuutil found and did in each half, and the code that makes it permanent."""
    for number, half in enumerate(arm.halves, start=1):
        acts = half.result["gpuutil"]
        say()
        say(f"gpuutil, run {number} of {len(arm.halves)}")
        if acts["findings"]:
            say(f"found: {_finding(acts['findings'][0])}", indent=2)
        else:
            say("found: nothing that costs time and that it could name", indent=2)
        for entry in acts["ledger"]:
            for depth, line in enumerate(_ledger_lines(entry)):
                say(line, indent=4 if depth else 2)
        if not acts["ledger"]:
            say("ledger: empty, nothing was tried", indent=2)
    recipe = arm.halves[-1].result["gpuutil"]["recipe"]
    if recipe:
        say()
        say("To make it permanent")
        for line in recipe.splitlines():
            print(f"  {line}")


def _finding(finding: Mapping[str, Any]) -> str:
    gain = finding.get("gain_ratio") or {}
    low, high = gain.get("low"), gain.get("high")
    text = str(finding.get("title") or finding.get("id"))
    if low is None or high is None:
        return text
    return f"{text} (predicted saving {100 * low:.0f} to {100 * high:.0f} % of the step)"


def _ledger_lines(entry: Mapping[str, Any]) -> Iterable[str]:
    """A ledger entry: how it ended, what and when it was, what it gave, and why."""
    speedup = entry.get("speedup") or {}
    changes = [
        f"{change['remedy']} {change['from']} -> {change['to']}"
        for change in entry.get("changes") or ()
    ]
    parts = [f"{entry['outcome']}: {', '.join(changes) or entry['remedy']}"]
    if entry.get("step") is not None:
        parts.append(f"step {entry['step']}")
    if speedup.get("mid") is not None:
        parts.append(f"{speedup['mid']:.2f}x ({speedup['low']:.2f} to {speedup['high']:.2f})")
    if entry.get("class"):
        parts.append(f"class {entry['class']}")
    yield "; ".join(parts)
    for key in ("reason", "conclusion"):
        if entry.get(key):
            yield str(entry[key])


def print_reached(comparison: Comparison) -> None:
    """The gain reached, to stand below the ceiling."""
    plain, fast = comparison.plain, comparison.gpuutil
    if fast is None:
        return
    last = fast.last_third_samples_per_second / plain.last_third_samples_per_second
    whole = fast.samples_per_second / plain.samples_per_second
    say(
        f"Reached: {last:.2f}x in the last third, {whole:.2f}x over the whole arm, start-up and "
        "trials included.",
        indent=2,
    )


def print_remarks(comparison: Comparison, quick: bool, ceiling: float | None = None) -> None:
    """What stands between these figures and a claim.

    Args:
        comparison: both arms.
        quick: the runs were too short to measure anything.
        ceiling: the best ratio of throughputs that the machine allows, where there is one.
    """
    remarks = list(_remarks(comparison, quick, ceiling))
    if remarks:
        say()
    for remark in remarks:
        say(remark)


def _remarks(comparison: Comparison, quick: bool, ceiling: float | None) -> Iterable[str]:
    plain, fast = comparison.plain, comparison.gpuutil
    if fast is None:
        yield (
            "gpuutil cannot be imported by this Python, so there is nothing to compare: "
            "run `pip install .` in the checkout first."
        )
    if quick:
        yield "--quick: too short to measure anything; it shows that everything runs."
        return
    if comparison.steps_run < comparison.steps_wanted:
        yield (
            f"There was time for {comparison.steps_run} steps a run where "
            f"{comparison.steps_wanted} were meant: gpuutil has fewer to earn its trials in."
        )
    if fast is None:
        return
    if comparison.foreign_cpus is None:
        yield "CPU use by others could not be measured here: take the ratios with care."
    elif comparison.crowded:
        yield (
            f"Others used up to {comparison.foreign_cpus:.1f} CPUs meanwhile. gpuutil holds its "
            "trials on a crowded machine, and more processes take a larger share of one, which is "
            "no gain: do not quote these ratios, run it again when the machine is quiet."
        )
    elif plain.spread_ratio > 2 * _NOISE_RATIO:
        yield (
            f"The plain runs themselves differ by {100 * plain.spread_ratio:.0f} %: the machine "
            "changed its speed, and the ratios are known no better than that."
        )
    ratio = fast.last_third_samples_per_second / plain.last_third_samples_per_second
    if ceiling is not None and ratio > ceiling * (1 + _NOISE_RATIO):
        yield (
            f"{ratio:.2f}x is above the ceiling of {ceiling:.2f}x: one of the two is wrong "
            "(usually neighbours slowed the plain arm). Not a gain to quote."
        )
    before, after = plain.cpu_seconds_per_sample, fast.cpu_seconds_per_sample
    if ratio > 1 and not comparison.crowded and before and after and after > before * 1.15:
        more = 100 * (after / before - 1)
        yield f"Part of the gain is bought: {more:.0f} % more CPU time a sample."


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value
