"""Random sequences with real processes; `tests/bench/exactness.py` runs more of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPT = """
import sys, warnings, collections
sys.path[:0] = {path!r}
if __name__ == "__main__":
    import sequences
    warnings.simplefilter("ignore")
    baseline = sequences.warm_up()
    counts = collections.Counter()
    for seed in range({first}, {last}):
        verdict = sequences.judge(seed, counts, baseline)
        if any(verdict.values()):
            sys.exit(f"{{seed}} {{verdict}} {{sequences.plan(seed)}} {{dict(counts)}}")
    if counts["served"] * 3 < counts["batches"]:
        sys.exit(f"hardly anything was served: {{dict(counts)}}")
"""


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_ten_random_sequences_are_exact_and_leave_nothing(first, tmp_path):
    """In a process of its own, so that what is left behind can be counted."""
    script = tmp_path / "run_sequences.py"
    path = [str(HERE), *[p for p in sys.path if p]]
    script.write_text(SCRIPT.format(path=path, first=first, last=first + 10))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
