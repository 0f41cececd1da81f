"""How scripts are run: by turns, in fresh processes, and one real case from end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.casebook import runner
from tests.casebook.truth import TRUTHS, Edit, Truth

ROOT = Path(__file__).resolve().parents[3]
LINE = "done: 1.00 s, 8 samples in 2 steps, 8.00 samples/s ({rate} in the last third), loss 0.1, order a, parameters b"
TRUTH = Truth("script", casebook="2-01", why="", finds=("host_python",))


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes the script that runs as the case, beside a helper module."""
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "_helper.py").write_text("RATE = 7.5\n")
    monkeypatch.setattr(runner, "CASES", cases)
    return lambda source: (cases / "script.py").write_text(source)


def run(tmp_path, arm="plain", truth=TRUTH, **settings):
    return runner.run_arm(
        truth, arm, runner.Settings(data=tmp_path / "data", **settings), tmp_path / "run"
    )


def test_the_last_line_is_read(script, tmp_path):
    script(f"from _helper import RATE\nprint('epoch 1')\nprint({LINE!r}.format(rate=RATE))\n")
    result = run(tmp_path)
    assert (result.rate, result.samples, result.steps, result.order) == (7.5, 8, 2, "a")


def test_a_mended_script_finds_the_helpers_too(script, tmp_path):
    script(f"from _helper import RATE\nprint({LINE!r}.format(rate=RATE))\n")
    truth = Truth("script", casebook="", why="", fix=(Edit("rate=RATE", "rate=2 * RATE"),))
    assert run(tmp_path, "by_hand", truth).rate == 15


def test_the_script_sees_the_cpus_that_the_truth_gives_it_and_none_of_our_variables(
    script, tmp_path, monkeypatch
):
    monkeypatch.setenv("GPUUTIL_DISABLE", "1")
    script(
        "import os\nassert 'GPUUTIL_DISABLE' not in os.environ\n"
        f"print({LINE!r}.format(rate=len(os.sched_getaffinity(0))))\n"
    )
    truth = Truth("script", casebook="", why="", cpus=1)
    before = os.sched_getaffinity(0)
    assert run(tmp_path, truth=truth).rate == 1
    assert os.sched_getaffinity(0) == before


def test_arguments_of_a_short_run_are_passed_on(script, tmp_path):
    script(
        "import sys\nassert sys.argv[1:5] == ['--epochs', '1', '--items', '64'], sys.argv\n"
        f"assert sys.argv[5] == '--data'\nprint({LINE!r}.format(rate=1))\n"
    )
    assert run(tmp_path, quick=True).rate == 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit('broken')", "exit code 1: broken"),
        ("print('nothing')", "no last line"),
        ("import time\ntime.sleep(60)", "not done after 0.5 s"),
    ],
)
def test_a_run_that_goes_wrong_says_how(script, tmp_path, source, reason):
    script(source)
    with pytest.raises(runner.RunError, match=reason):
        run(tmp_path, timeout_seconds=0.5 if "sleep" in source else 60)


def test_a_run_under_gpuutil_without_a_report_is_an_error(script, tmp_path):
    script(f"print({LINE!r}.format(rate=1))\n")
    with pytest.raises(runner.RunError, match="0 reports"):
        run(tmp_path, "watched")


def test_arms_go_by_turns_and_backwards_every_other_time(script, tmp_path, monkeypatch):
    order = []

    def note(truth, arm, settings, folder):
        order.append(arm)
        if arm == "live":
            raise runner.RunError("fell over")
        return runner.RunResult(1, 1, 1, 1.0, 0.0, "a", "b")

    script("")
    monkeypatch.setattr(runner, "run_arm", note)
    truth = Truth("script", casebook="", why="", fix=(Edit("a", "b"),))
    result = runner.run_case(truth, runner.Settings(data=tmp_path, repeats=2), str)
    assert order == [*runner.ARMS, *reversed(runner.ARMS)]
    assert result.failures == ["live: fell over"] * 2
    assert {arm: len(runs) for arm, runs in result.runs.items()} == {
        "plain": 2,
        "watched": 2,
        "by_hand": 2,
    }


def test_neighbours_are_gone_after_the_case(script, tmp_path):
    def children():
        listing = Path(f"/proc/self/task/{os.getpid()}/children")
        return set(listing.read_text().split())

    script("")
    before = children()
    with runner._neighbours(2):
        assert len(children() - before) == 2
    assert children() == before


def test_a_small_case_runs_from_end_to_end(tmp_path):
    out = tmp_path / "casebook.json"
    command = [sys.executable, "-m", "tests.casebook", "--quick", "--only", "click_rows"]
    done = subprocess.run(
        [*command, "--json", str(out), "--data", str(tmp_path / "data")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "click_rows" in done.stdout and "top1_low" in done.stdout
    result = json.loads(out.read_text())
    (case,) = result["cases"]
    assert {arm: len(runs) for arm, runs in case["runs"].items()} == dict.fromkeys(runner.ARMS, 1)
    assert case["mismatches"] == [] and case["failures"] == []
    assert case["runs"]["plain"][0]["order"] == case["runs"]["watched"][0]["order"]
    assert result["summary"]["cases"] == 1


def test_the_list_names_every_case():
    done = subprocess.run(
        [sys.executable, "-m", "tests.casebook", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(TRUTHS)
