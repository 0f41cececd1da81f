"""The command `gpuutil`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .config import RUNGS


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit status; `run` never returns, it becomes the script's process."""
    options = _parser().parse_args(arguments)
    return options.action(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpuutil", description="Says where a PyTorch training's time goes, and fixes it while it trains."
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    run = commands.add_parser("run", help="run an unmodified training script with gpuutil attached")
    run.add_argument("--apply", choices=RUNGS, help="the most that may be changed unasked (default: auto)")
    run.add_argument("--log-dir", metavar="DIR", help="folder for report files (default: gpuutil_logs/<run id>)")
    run.add_argument("script", help="the script, as you would give it to python")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    run.set_defaults(action=_run)

    doctor = commands.add_parser("doctor", help="say what can be measured and changed here, and why not")
    doctor.set_defaults(action=_doctor)
    return parser


def _run(options: argparse.Namespace) -> int:
    script = Path(options.script)
    if not script.is_file():
        print(f"gpuutil run: can't open file {options.script!r}", file=sys.stderr)
        return 2
    if options.apply:
        os.environ["GPUUTIL_APPLY"] = options.apply
    if options.log_dir:
        os.environ["GPUUTIL_LOG_DIR"] = options.log_dir
    launcher = str(Path(__file__).with_name("_launch.py"))
    # The interpreter's own options (-u, -W, -X ...) stay in force.
    flags = _interpreter_flags()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *flags, launcher, options.script, *options.arguments])


def _interpreter_flags() -> list[str]:
    import subprocess

    return subprocess._args_from_interpreter_flags()


def _doctor(options: argparse.Namespace) -> int:
    from .doctor import examine

    for line in examine():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
