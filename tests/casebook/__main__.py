"""python -m tests.casebook: runs the cases and prints what was found, kept and gained."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .printing import as_json, as_text
from .runner import Settings, default_data, run_case
from .truth import TRUTHS


def main() -> int:
    """Exit status 1 where a run failed, whatever the figures are."""
    options = _parser().parse_args()
    if options.list:
        for truth in TRUTHS.values():
            print(f"{truth.script:20} {truth.casebook or 'healthy':10} {truth.why}")
        return 0
    settings = Settings(
        data=options.data.resolve(),
        quick=options.quick,
        repeats=options.repeats,
        apply=options.apply,
    )
    chosen = options.only or list(TRUTHS)
    cases = [run_case(TRUTHS[name], settings, _say) for name in chosen]
    print(as_text(cases))
    if options.json:
        options.json.write_text(json.dumps(as_json(cases), indent=1) + "\n")
    return int(any(case.failures for case in cases))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.casebook", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few steps each: does it run?")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=TRUTHS, help="these scripts")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each arm (default 1)")
    parser.add_argument("--apply", help="the most that live runs may change (default: auto)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything, for programs")
    parser.add_argument("--list", action="store_true", help="say what the cases are, and end")
    parser.add_argument(
        "--data", type=Path, default=default_data(), help="keeps the data sets (%(default)s)"
    )
    return parser


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
