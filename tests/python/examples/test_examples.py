"""The examples run to the end, say what they should, and make their data once."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("PIL")

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))

import _arms  # noqa: E402
import _entry  # noqa: E402
import _machine  # noqa: E402
import _object_server  # noqa: E402
import _photo_files  # noqa: E402
import _summary  # noqa: E402

SMALL = _photo_files.PhotoSet(count=9, width=64, height=48)

# A gpuutil that changes nothing and reports one entry: what the examples print of it is tested
# whether or not the real one is built.
STAND_IN = """
class Monitor:
    findings = [dict(id="input_single_process", title="one process makes the input",
                     gain_ratio=dict(low=0.4, high=0.5))]
    ledger = [{"id": 1, "remedy": "loader_workers + main_threads", "class": "distribution",
               "step": 4, "reason": "input wait 80 % of the step", "outcome": "kept",
               "changes": [{"remedy": "loader_workers", "from": 0, "to": 2},
                           {"remedy": "main_threads", "from": 2, "to": 1}],
               "conclusion": "faster beyond doubt",
               "speedup": {"low": 1.7, "mid": 1.8, "high": 1.9}}]

    def recipe(self):
        return "DataLoader(..., num_workers=2)"


def attach(model=None):
    return Monitor()
"""
# Before the finder of an editable install, which comes before PYTHONPATH.
STAND_IN_FIRST = """
import importlib.machinery
import os
import sys


class StandInFirst:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "gpuutil":
            return importlib.machinery.PathFinder.find_spec(name, [os.path.dirname(__file__)])
        return None


sys.meta_path.insert(0, StandInFirst)
"""
BROKEN = 'raise ImportError("its engine is not built", name="gpuutil")'


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not _photo_files.sources():
        pytest.skip("no sample photographs: pip install scikit-image scikit-learn")
    return tmp_path_factory.mktemp("cache")


def run_example(
    name: str, folder: Path, *arguments: str, gpuutil: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs an example with a folder as working directory.

    Args:
        name: file name of the example.
        folder: where it runs; a stand-in for gpuutil is written below it.
        *arguments: of the example.
        gpuutil: source text of a module that stands in for gpuutil; None for the installed one.
    """
    environment = dict(os.environ)
    if gpuutil is not None:
        modules = folder / "modules"
        modules.mkdir()
        (modules / "gpuutil.py").write_text(gpuutil)
        (modules / "sitecustomize.py").write_text(STAND_IN_FIRST)
        environment["PYTHONPATH"] = str(modules)
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def arguments_for(name: str, cache: Path) -> list[str]:
    return ["--quick"] if name == "text_lm.py" else ["--quick", "--cache", str(cache)]


@pytest.mark.parametrize(
    ("name", "sample"),
    [("photos.py", "image"), ("object_store.py", "record"), ("text_lm.py", "passage")],
)
def test_an_example_compares_both_arms_and_prints_ledger_and_recipe(
    name: str, sample: str, cache: Path, tmp_path: Path
) -> None:
    done = run_example(name, tmp_path, *arguments_for(name, cache), gpuutil=STAND_IN)
    assert done.returncode == 0, done.stderr
    rate = r"\d+\.\d"
    for row in ("whole arm", "last third"):
        assert re.search(rf"{sample}s/s, {row} +{rate} +{rate} +\d+\.\d\dx", done.stdout)
    assert re.search(rf"CPU ms per {sample} +\d+\.\d\d +\d+\.\d\d", done.stdout)
    assert re.search(r"CPUs in use by others +(\d+\.\d\d|not measured)", done.stdout)
    assert (
        "  kept: loader_workers 0 -> 2, main_threads 2 -> 1; step 4; 1.80x (1.70 to 1.90); "
        "class distribution\n    input wait 80 % of the step\n    faster beyond doubt\n"
    ) in done.stdout
    assert "one process makes the input (predicted saving 40 to 50 % of the step)" in done.stdout
    assert "  DataLoader(..., num_workers=2)" in done.stdout
    assert "--quick: too short to measure anything" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100 + len(str(cache))
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["photos.py", "object_store.py", "text_lm.py"])
def test_an_example_runs_with_the_gpuutil_that_is_installed(
    name: str, cache: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gpuutil")
    done = run_example(name, tmp_path, *arguments_for(name, cache))
    assert done.returncode == 0, done.stderr
    assert "gpuutil, run 1 of 1" in done.stdout
    assert "Traceback" not in done.stderr


def test_without_gpuutil_an_example_runs_the_plain_arm_and_says_so_once(tmp_path: Path) -> None:
    done = run_example("text_lm.py", tmp_path, "--quick", gpuutil=BROKEN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gpuutil cannot be imported") == 1
    assert re.search(r"passages/s, whole arm +\d+\.\d +-$", done.stdout, re.MULTILINE)
    assert "its engine is not built" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_arm_alone_is_a_training_script_that_writes_its_measurements(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = run_example(
        "text_lm.py", tmp_path, "--arm", "plain", "--steps", "3", "--json", str(result)
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(result.read_text())
    assert measured["arm"] == "plain"
    assert len(measured["step_seconds"]) == len(measured["losses"]) == 3
    assert sum(measured["step_seconds"]) == pytest.approx(measured["wall_seconds"])
    assert measured["gpuutil"] is None


def test_a_training_script_that_fails_fails_the_example_in_one_sentence(tmp_path: Path) -> None:
    failing = "def attach(model):\n    raise RuntimeError('no')\n"
    done = run_example("text_lm.py", tmp_path, "--quick", gpuutil=failing)
    assert done.returncode == 1
    assert "text_lm.py: the gpuutil run ended with exit code 1 and no result" in done.stderr


@pytest.mark.parametrize("name", ["photos.py", "object_store.py", "text_lm.py"])
def test_help_names_the_options(name: str, tmp_path: Path) -> None:
    done = run_example(name, tmp_path, "--help")
    assert done.returncode == 0
    for option in ("--steps", "--quick", "--arm", "--seed"):
        assert option in done.stdout


def test_the_full_set_is_600_photographs_of_1200x900_at_quality_90(cache: Path) -> None:
    full = _photo_files.PhotoSet()
    assert (full.count, full.width, full.height, full.quality) == (600, 1200, 900, 90)
    # The same number of files at a size that takes a second.
    photos, written = _photo_files.prepare(cache, _photo_files.PhotoSet(width=64, height=48))
    assert len(photos) == written == len({photo.path for photo in photos}) == 600
    assert all(photo.path.is_file() for photo in photos)


def test_files_have_the_size_asked_for_and_differ(cache: Path) -> None:
    from PIL import Image

    photos, _ = _photo_files.prepare(cache, SMALL)
    sizes = []
    for photo in photos:
        with Image.open(photo.path) as image:
            image.load()
            sizes.append(image.size)
            assert image.format == "JPEG"
    assert sizes == [(64, 48)] * 9
    assert len({photo.path.read_bytes() for photo in photos}) == 9


def test_a_second_run_writes_nothing(cache: Path) -> None:
    photos, _ = _photo_files.prepare(cache, SMALL)
    before = {photo.path: photo.path.stat().st_mtime_ns for photo in photos}
    manifest = photos[0].path.parent / "manifest.json"
    written = manifest.stat().st_mtime_ns
    again, count = _photo_files.prepare(cache, SMALL)
    assert count == 0
    assert {photo.path: photo.path.stat().st_mtime_ns for photo in again} == before
    assert manifest.stat().st_mtime_ns == written


def test_a_half_written_cache_is_repaired_to_the_same_files(cache: Path) -> None:
    photos, _ = _photo_files.prepare(cache, SMALL)
    whole = [photo.path.read_bytes() for photo in photos]
    folder = photos[0].path.parent
    photos[2].path.unlink()
    photos[5].path.write_bytes(whole[5][: len(whole[5]) // 2])
    photos[7].path.write_bytes(whole[7][:-1] + b"\0")
    leftover = folder / "00008.partial"
    leftover.write_bytes(b"half")
    untouched = photos[0].path.stat().st_mtime_ns
    again, count = _photo_files.prepare(cache, SMALL)
    assert count == 3
    assert [photo.path.read_bytes() for photo in again] == whole
    assert not leftover.exists()
    assert photos[0].path.stat().st_mtime_ns == untouched


def test_files_without_a_manifest_are_made_again(cache: Path) -> None:
    photos, _ = _photo_files.prepare(cache, SMALL)
    whole = [photo.path.read_bytes() for photo in photos]
    (photos[0].path.parent / "manifest.json").unlink()
    photos[1].path.write_bytes(b"not a photograph")
    again, count = _photo_files.prepare(cache, SMALL)
    assert count == 9
    assert [photo.path.read_bytes() for photo in again] == whole


def test_without_the_sample_photographs_photos_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_photo_files, "sources", list)
    with pytest.raises(_entry.ExampleError, match="pip install scikit-image scikit-learn"):
        _photo_files.prepare(tmp_path)


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path, cache: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = run_example("photos.py", tmp_path, "--quick", "--cache", str(blocked))
    assert done.returncode == 1
    assert done.stderr.startswith("photos.py: ")
    assert "Traceback" not in done.stderr


def test_the_cache_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _photo_files.default_cache() == tmp_path / "gpuutil" / "examples"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _photo_files.default_cache() == Path.home() / ".cache" / "gpuutil" / "examples"


def test_cpu_seconds_of_a_tree_count_a_child_that_ended() -> None:
    before = _machine.tree_cpu_seconds(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert before is not None
    assert _machine.tree_cpu_seconds(os.getpid()) - before >= 0.25


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, math.inf),
        ({"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}, 0.5),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, math.inf),
        ({}, math.inf),
    ],
)
def test_the_quota_of_a_cgroup_is_read_in_both_versions(
    files: dict[str, str], cpus: float, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert _machine._quota(tmp_path) == cpus


def test_the_object_server_serves_late_at_a_limited_rate_and_ends(tmp_path: Path) -> None:
    def get(port: int, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    for number in range(3):
        (tmp_path / f"{number:05d}.jpg").write_bytes(b"object %d" % number)
    # 0.2 s to the first byte; one object in 0.3 s, which is what the second and the third wait for.
    with _object_server.serving(tmp_path, latency_seconds=0.2, rate=1 / 0.3) as store:
        start = time.monotonic()
        assert get(store.port, "/2") == (200, b"object 2")
        assert time.monotonic() - start >= 0.2
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(lambda path: get(store.port, path), ("/0", "/1", "/2")))
        assert answers == [(200, b"object %d" % number) for number in range(3)]
        assert time.monotonic() - start >= 0.9
        assert get(store.port, "/3")[0] == get(store.port, "/../x")[0] == 404
    assert not Path(f"/proc/{store.pid}").exists()


def half(
    seconds: float, foreign: float | None = 0.0, steps: int = 9, cpu_seconds: float = 1.0
) -> _arms.Half:
    result = {
        "batch": 2,
        "wall_seconds": seconds * steps,
        "step_seconds": [seconds] * steps,
        "cpu_seconds": cpu_seconds,
        "losses": [1.0] * steps,
        "gpuutil": {"findings": [], "ledger": [], "recipe": ""},
    }
    return _arms.Half(result, foreign, None)


def remarks(plain: _arms.Arm, fast: _arms.Arm, capsys: pytest.CaptureFixture[str]) -> str:
    comparison = _arms.Comparison(plain, fast, steps_wanted=9)
    _summary.print_remarks(comparison, quick=False, ceiling=1.9)
    return capsys.readouterr().out


def test_a_clean_comparison_has_no_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fast = _arms.Arm([half(1.0), half(1.0)]), _arms.Arm([half(0.6), half(0.6)])
    assert fast.samples_per_second / plain.samples_per_second == pytest.approx(1 / 0.6)
    assert remarks(plain, fast, capsys) == ""


def test_a_gain_above_the_ceiling_is_not_to_be_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    text = remarks(_arms.Arm([half(1.0)]), _arms.Arm([half(0.4)]), capsys)
    assert "2.50x is above the ceiling of 1.90x" in text


@pytest.mark.parametrize(
    ("foreign", "remark"), [(0.9, "Others used up to 0.9 CPUs"), (None, "could not be measured")]
)
def test_neighbours_and_their_absence_from_the_readings_are_said(
    foreign: float | None, remark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, fast = _arms.Arm([half(1.0)]), _arms.Arm([half(0.6, foreign)])
    assert remark in remarks(plain, fast, capsys)


def test_fewer_steps_than_meant_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    plain, fast = _arms.Arm([half(1.0, steps=5)]), _arms.Arm([half(0.6, steps=5)])
    assert "5 steps a run where 9 were meant" in remarks(plain, fast, capsys)


def test_runs_of_one_arm_that_differ_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    plain = _arms.Arm([half(1.0), half(1.3)])
    assert "differ by 30 %" in remarks(plain, _arms.Arm([half(0.7)]), capsys)


def test_a_gain_that_costs_more_cpu_time_a_sample_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = _arms.Arm([half(1.0)])
    assert "bought: 50 % more CPU" in remarks(
        plain, _arms.Arm([half(0.6, cpu_seconds=1.5)]), capsys
    )
    assert "bought" not in remarks(plain, _arms.Arm([half(0.6, cpu_seconds=1.1)]), capsys)
