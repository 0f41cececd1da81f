"""Every benchmark runs and prints its keys. None is a timed test: the figures are not looked at here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
KEYS = {
    "hot_path.py": {"python_us_per_step", "native_us_per_step", "aa_us"},
    "end_to_end.py": {
        "added_us_block_p10", "added_us_block_median", "added_ratio_block_median", "process_cpu_ratio",
        "aa_ratio", "import_ms", "attach_ms", "extra_threads", "extra_processes", "extra_rss_mb",
    },
    "loader_recovery.py": {"workloads"},
    "healthy.py": {"speed_ratio_low", "speed_ratio_high", "changes_kept", "warnings"},
    "trial_errors.py": {"false_keep_ratio", "true_keep_ratio", "median_steps"},
    "item_cost.py": {"batch_fetch_speedup"},
    "casebook.py": {
        "cases", "top1_ratio", "top1_low", "false_alarm_ratio", "slower_keeps", "checksum_mismatches",
        "median_share_of_hand_fix", "min_share",
    },
    "exactness.py": {"sequences", "lost", "doubled", "reordered", "mismatched"},
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_a_benchmark_runs_quickly_and_prints_its_keys(name, tmp_path):
    done = subprocess.run(
        [sys.executable, BENCH / name, "--quick"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert KEYS[name] <= set(result)
    if name == "exactness.py":
        assert [result[k] for k in ("lost", "doubled", "reordered", "mismatched")] == [0, 0, 0, 0]
    if name == "loader_recovery.py":
        keys = {"name", "best_grid", "reached", "fraction_of_best", "fraction_low", "seconds_to_95"}
        assert keys | {"steps_to_95", "excess_stall_ms"} <= set(result["workloads"][0])
