"""Runs one script of the casebook: plain, watched, live and mended by hand, by turns.

Each run is a fresh process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .truth import Truth, fixed

CASES = Path(__file__).with_name("cases")
ARMS = ("plain", "watched", "live", "by_hand")
"""`watched` is `gpuutil run --apply observe`: what is found while nothing is changed, because what
`live` mends is no longer there to be found."""

_LAST_LINE = re.compile(
    r"done: (?P<seconds>\S+) s, (?P<samples>\d+) samples in (?P<steps>\d+) steps, "
    r"(?P<whole>\S+) samples/s \((?P<rate>\S+) in the last third\), "
    r"loss (?P<loss>\S+), order (?P<order>\S+), parameters (?P<parameters>\S+)"
)
_BUSY = "while True: pass"


class RunError(RuntimeError):
    """A script ended with an error, or without its last line or its report."""


def default_data() -> Path:
    """The user's cache folder, by the XDG rules."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "gpuutil" / "casebook"


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a case is run.

    Attributes:
        data: folder that keeps the scripts' data sets.
        quick: with the short arguments of each truth; shows that it works, measures nothing.
        repeats: times that each arm runs.
        apply: the rung of the live arm; None leaves it to gpuutil.
        timeout_seconds: of one run.
    """

    data: Path
    quick: bool = False
    repeats: int = 1
    apply: str | None = None
    timeout_seconds: float = 600


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What one run said at its end, and what gpuutil wrote about it.

    Attributes:
        rate: samples a second over the last third of the steps, the turns of epochs in it included.
    """

    seconds: float
    samples: int
    steps: int
    rate: float
    loss: float
    order: str
    parameters: str
    findings: tuple[dict[str, Any], ...] = ()
    ledger: tuple[dict[str, Any], ...] = ()


@dataclasses.dataclass
class CaseResult:
    """All runs of one case, by arm, and what went wrong with any of them."""

    truth: Truth
    runs: dict[str, list[RunResult]] = dataclasses.field(default_factory=dict)
    failures: list[str] = dataclasses.field(default_factory=list)


def run_case(truth: Truth, settings: Settings, say: Callable[[str], None]) -> CaseResult:
    """All arms of one case. What fails is noted in the result; the other runs go on."""
    result = CaseResult(truth)
    arms = [arm for arm in ARMS if arm != "by_hand" or truth.fix]
    with _neighbours(truth.neighbours), tempfile.TemporaryDirectory() as folder:
        try:
            no_epoch = [*_arguments(truth, settings), "--epochs", "0"]
            _execute(truth, "plain", settings, Path(folder) / "data", no_epoch)
        except RunError as error:
            result.failures.append(f"making its data: {error}")
            return result
        for repeat in range(settings.repeats):
            # Backwards every other time: what drifts favours no arm.
            for arm in arms if repeat % 2 == 0 else reversed(arms):
                try:
                    run = run_arm(truth, arm, settings, Path(folder) / f"{arm}{repeat}")
                except RunError as error:
                    result.failures.append(f"{arm}: {error}")
                    say(f"{truth.script:20} {arm:8} failed: {error}")
                    continue
                result.runs.setdefault(arm, []).append(run)
                say(f"{truth.script:20} {arm:8} {run.seconds:6.1f} s {run.rate:10.1f} samples/s")
    return result


def run_arm(truth: Truth, arm: str, settings: Settings, folder: Path) -> RunResult:
    """One run of one arm.

    Args:
        folder: an empty place for it; made here.

    Raises:
        RunError: see there.
    """
    output = _execute(truth, arm, settings, folder, _arguments(truth, settings))
    found = _LAST_LINE.fullmatch(output.rstrip().rpartition("\n")[2])
    if found is None:
        raise RunError(f"no last line, but {output[-200:]!r}")
    report: dict[str, Any] = {"findings": (), "ledger": ()}
    if arm in ("watched", "live"):
        reports = list(folder.rglob("report.json"))
        if len(reports) != 1:
            raise RunError(f"{len(reports)} reports were written, not one")
        report = json.loads(reports[0].read_text())
    return RunResult(
        seconds=float(found["seconds"]),
        samples=int(found["samples"]),
        steps=int(found["steps"]),
        rate=float(found["rate"]),
        loss=float(found["loss"]),
        order=found["order"],
        parameters=found["parameters"],
        findings=tuple(report["findings"]),
        ledger=tuple(report["ledger"]),
    )


def _arguments(truth: Truth, settings: Settings) -> list[str]:
    return list(truth.quick) if settings.quick else []


def _execute(truth: Truth, arm: str, settings: Settings, folder: Path, arguments: list[str]) -> str:
    folder.mkdir()
    script = CASES / f"{truth.script}.py"
    if arm == "by_hand":
        mended = folder / script.name
        mended.write_text(fixed(script.read_text(), truth.fix))
        script = mended
    command = [sys.executable]
    if arm in ("watched", "live"):
        command += ["-m", "gpuutil", "run", "--log-dir", str(folder / "log")]
        rung = "observe" if arm == "watched" else settings.apply
        command += ["--apply", rung] if rung else []
    command += [str(script), *arguments, "--data", str(settings.data)]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=settings.timeout_seconds,
            preexec_fn=_narrow(truth.cpus),
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"not done after {settings.timeout_seconds:g} s") from error
    if done.returncode != 0:
        raise RunError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Ours, less what would steer gpuutil; the helpers of the scripts are found from anywhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUUTIL_")}
    paths = [str(CASES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "no_proxy": "127.0.0.1"}


def _narrow(cpus: int | None) -> Callable[[], None] | None:
    if cpus is None:
        return None
    mask = sorted(os.sched_getaffinity(0))[:cpus]
    return lambda: os.sched_setaffinity(0, mask)


@contextlib.contextmanager
def _neighbours(count: int) -> Iterator[None]:
    """Processes that compute as long as the block lasts."""
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
