"""Does gpuutil name the cause, leave the healthy alone, and reach live what a hand would reach?

    python tests/bench/casebook.py [--quick] [--only NAME ...] [--repeats N]

The suite of `tests/casebook/`, three repeats of each arm. Keys: cases; top1_ratio, top1_low (the top
finding of a run that only watches is one that is accepted; lower Wilson bound at 95 %);
false_alarm_ratio (runs of healthy scripts with a warning); slower_keeps (cases where something was
kept and all live runs are behind all plain ones); checksum_mismatches (sample order or parameters
that differ without a class that says so); median_share_of_hand_fix, min_share (where a setting
changed by hand gains at least 10 %; null where none does); detail (by case).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _measure import finish, say

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.casebook.figures import summary
from tests.casebook.printing import as_json, as_text
from tests.casebook.runner import Settings, default_data, run_case
from tests.casebook.truth import TRUTHS

_QUICK = ("handwriting", "click_rows", "spirals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three short cases: does it run?")
    parser.add_argument("--only", nargs="+", choices=TRUTHS, metavar="NAME", help="these cases")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    names = options.only or (_QUICK if options.quick else TRUTHS)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) if options.quick else default_data()
        repeats = 1 if options.quick else options.repeats
        settings = Settings(data=data, quick=options.quick, repeats=repeats)
        cases = [run_case(TRUTHS[name], settings, say) for name in names]
    say(as_text(cases))
    detail = as_json(cases)["cases"]
    for case in detail:
        del case["runs"]
    finish({**summary(cases), "repeats": repeats, "detail": detail})


if __name__ == "__main__":
    main()
