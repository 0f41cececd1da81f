"""The arithmetic of the casebook, on made-up results."""

from __future__ import annotations

import pytest
from tests.casebook import figures
from tests.casebook.printing import as_json, as_text
from tests.casebook.runner import CaseResult, RunResult
from tests.casebook.truth import Edit, Truth

SICK = Truth(
    "sick",
    casebook="2-01",
    why="",
    finds=("input_cpu_bound", "input_single_process"),
    never=("input_latency_bound",),
    remedies=("loader_workers",),
    refused=("loader_persistent",),
    fix=(Edit("a", "b"),),
)
HEALTHY = Truth("healthy", casebook="", why="")


def run(rate=100.0, findings=(), kept=(), order="a", parameters="b", kind="exact", outcome="kept"):
    """`findings`: (id, severity); `kept`: remedies of ledger rows."""
    return RunResult(
        seconds=1.0,
        samples=1,
        steps=1,
        rate=rate,
        loss=0.0,
        order=order,
        parameters=parameters,
        findings=tuple({"id": name, "severity": severity} for name, severity in findings),
        ledger=tuple({"remedy": name, "class": kind, "outcome": outcome} for name in kept),
    )


def case(truth=SICK, failures=(), **arms):
    return CaseResult(truth, {arm: list(runs) for arm, runs in arms.items()}, list(failures))


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    # Published values of the interval.
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_bounds(hits, count, low, high):
    assert figures.wilson(hits, count) == pytest.approx((low, high), abs=1e-3)


def test_without_trials_nothing_is_known():
    assert figures.wilson(0, 0) == (0.0, 1.0)


def test_the_confusion_row_counts_the_first_finding_of_each_watched_run():
    found = case(
        watched=[
            run(findings=[("input_single_process", "critical"), ("host_python", "warning")]),
            run(findings=[("host_python", "warning")]),
            run(),
        ]
    )
    assert figures.tops(found) == {"input_single_process": 1, "host_python": 1, "-": 1}
    assert figures.hits(found) == (1, 3)


def test_a_watched_run_that_failed_is_a_miss():
    assert figures.hits(case(failures=["watched: exit code 1", "live: exit code 1"])) == (0, 1)
    assert figures.hits(case(failures=["making its data: exit code 1"])) == (0, 1)


def test_only_warnings_are_false_alarms_and_they_count_in_both_arms():
    quiet = run(findings=[("input_cpu_bound", "info")])
    loud = run(findings=[("input_cpu_bound", "info"), ("host_python", "critical")])
    found = case(HEALTHY, watched=[quiet, quiet], live=[quiet, loud])
    assert figures.false_alarms(found) == (1, 4)
    assert figures.tops(case(HEALTHY, watched=[quiet, loud])) == {"-": 1, "host_python": 1}


def test_forbidden_findings_count_as_misleading_from_a_warning_on():
    info, warning = ("input_latency_bound", "info"), ("input_latency_bound", "warning")
    assert figures.misleading(case(watched=[run(findings=[info])])) == []
    assert figures.misleading(case(watched=[run(findings=[warning])])) == ["input_latency_bound"]


def test_compound_rows_name_all_their_remedies():
    found = case(live=[run(kept=["loader_workers + main_threads"]), run(kept=["loader_persistent"])])
    assert figures.kept_remedies(found) == {"loader_workers", "main_threads", "loader_persistent"}
    assert figures.kept_a_remedy_that_counts(found)
    assert figures.kept_what_is_refused(found) == ["loader_persistent"]
    assert not figures.kept(case(live=[run(kept=["loader_workers"], outcome="undone")]))


def test_the_share_of_the_hand_fix_is_of_its_gain():
    found = case(plain=[run(100)], live=[run(190)], by_hand=[run(200)])
    assert figures.share_of_hand_fix(found) == pytest.approx(0.9)


def test_a_share_needs_a_gain_by_hand_that_a_remedy_could_reach():
    small = case(plain=[run(100)], live=[run(120)], by_hand=[run(109)])
    assert figures.share_of_hand_fix(small) is None
    rewrite = Truth("x", casebook="2-01", why="", finds=("host_python",), fix_is_live=False)
    found = case(rewrite, plain=[run(100)], live=[run(120)], by_hand=[run(300)])
    assert figures.share_of_hand_fix(found) is None
    assert figures.share_of_hand_fix(case(plain=[run(100)], live=[run(150)])) is None


def test_rates_are_medians_over_the_repeats():
    found = case(plain=[run(100), run(10), run(110)], live=[run(300), run(150), run(1)])
    assert figures.speedup(found, "live") == pytest.approx(1.5)


def test_a_slower_keep_takes_a_change_and_a_clear_loss():
    plain = [run(100), run(104)]
    assert figures.slower_keep(case(plain=plain, live=[run(90, kept=["x"]), run(96, kept=["x"])]))
    assert not figures.slower_keep(case(plain=plain, live=[run(90, kept=["x"]), run(99)]))
    assert not figures.slower_keep(case(plain=plain, live=[run(50), run(50)]))


@pytest.mark.parametrize(
    ("kind", "differs", "expected"),
    [
        ("exact", "order", ["order (live)"]),
        ("rounding", "order", ["order (live)"]),
        ("distribution", "order", []),
        ("exact", "parameters", ["parameters (live)"]),
        ("rounding", "parameters", []),
    ],
)
def test_a_checksum_may_differ_only_as_the_class_in_the_ledger_says(kind, differs, expected):
    live = run(kept=["x"], kind=kind, outcome="undone", **{differs: "other"})
    assert figures.mismatches(case(plain=[run()], live=[live])) == expected


def test_a_refused_change_announces_nothing():
    live = run(kept=["x"], kind="semantics", outcome="refused", order="other")
    assert figures.mismatches(case(plain=[run()], live=[live])) == ["order (live)"]


def test_watching_may_never_change_a_checksum():
    assert figures.mismatches(case(plain=[run()], watched=[run(parameters="other")])) == [
        "parameters (watched)"
    ]


def test_plain_runs_that_differ_are_named_and_not_compared_with():
    found = case(plain=[run(order="a"), run(order="c")], live=[run(order="d")])
    assert figures.unrepeatable(found) == ["order"]
    assert figures.mismatches(found) == []


def test_the_summary_has_the_keys_of_the_benchmark_and_unknown_is_none():
    nothing = figures.summary([])
    assert nothing["top1_ratio"] is None and nothing["min_share"] is None
    cases = [
        case(
            plain=[run(100)],
            watched=[run(findings=[("input_cpu_bound", "critical")])],
            live=[run(190, kept=["loader_workers"])],
            by_hand=[run(200)],
        ),
        case(HEALTHY, plain=[run()], watched=[run()], live=[run(80, kept=["x"])]),
    ]
    made = figures.summary(cases)
    assert made["cases"] == 2 and made["top1_ratio"] == 1 and made["slower_keeps"] == 1
    assert made["top1_low"] == pytest.approx(figures.wilson(1, 1)[0])
    assert made["false_alarm_ratio"] == 0 and made["checksum_mismatches"] == 0
    assert made["median_share_of_hand_fix"] == made["min_share"] == pytest.approx(0.9)


def test_the_text_marks_what_is_wrong_and_the_json_has_every_case():
    cases = [
        case(
            plain=[run(100)],
            watched=[run(findings=[("input_latency_bound", "critical")])],
            live=[run(50, kept=["loader_persistent"], order="other")],
            failures=["by_hand: exit code 1"],
        )
    ]
    text = as_text(cases)
    for part in (
        "x input_latency_bound",
        "misleading: sick: input_latency_bound",
        "kept and slower: sick",
        "kept though it must not be: sick: loader_persistent",
        "not bit-identical: sick: order (live)",
        "failed: sick: by_hand: exit code 1",
    ):
        assert part in text
    assert [entry["script"] for entry in as_json(cases)["cases"]] == ["sick"]
