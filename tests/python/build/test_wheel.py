"""What lands on a user's machine: built from this checkout, in the build folder it already has."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

pytest.importorskip("torch")
pytest.importorskip("scikit_build_core")

ROOT = Path(__file__).resolve().parents[3]

# Without `site`, so that no installed gpuutil, an editable one most of all, is found before the one
# under test.
ISOLATED = [sys.executable, "-S", "-c"]


def _run(command: list[str], **kwargs) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **kwargs)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def _path_of_torch() -> str:
    import torch

    return str(Path(torch.__file__).resolve().parents[1])


def _environment(*folders: Path | str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, folders), _path_of_torch()])}


def _tools_on_path() -> dict[str, str]:
    here = str(Path(sys.executable).parent)  # ninja and cmake may be the environment's
    return {**os.environ, "PATH": os.pathsep.join([here, os.environ.get("PATH", "")])}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"]
    _run([*command, "-w", str(folder), str(ROOT)], env=_tools_on_path())
    (built,) = folder.glob("gpuutil-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_a_wheel_holds_python_modules_and_what_they_load_and_no_sources(wheel: Path):
    names = [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]
    code = [name for name in names if not name.parts[0].endswith(".dist-info")]
    assert {name.parts[0] for name in code} == {"gpuutil"}
    assert {name.suffix for name in code} == {".py", ".so", ".json"}
    native = Counter(name.name.split(".")[0] for name in code if name.suffix == ".so")
    assert native == {"_core": 1, "_torch": 1}
    assert PurePosixPath("gpuutil/_torch_build.json") in code


def test_a_wheel_holds_every_python_file_of_the_package_and_of_the_hooks(wheel: Path):
    expected = set()
    for folder, name in (("python/gpuutil", "gpuutil"), ("hooks", "gpuutil/hooks")):
        for path in (ROOT / folder).rglob("*.py"):
            expected.add(f"{name}/{path.relative_to(ROOT / folder)}")
    assert "gpuutil/hooks/torch_module.py" in expected
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    assert packed == expected


def test_a_wheel_asks_for_no_package_without_an_extra(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    asked = [
        line
        for line in archive.read(name).decode().splitlines()
        if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert asked == []


def test_an_installed_wheel_imports_its_modules_from_itself(unpacked: Path):
    script = (
        "import torch, gpuutil._core as c, gpuutil._torch as t, gpuutil.hooks.torch_module as m\n"
        "print(c.__file__, t.__file__, m.__file__, sep='\\n')"
    )
    for line in _run([*ISOLATED, script], env=_environment(unpacked)).split():
        assert Path(line).is_relative_to(unpacked)


def test_an_editable_install_puts_nothing_but_the_package_on_the_path(tmp_path: Path):
    script = f"import scikit_build_core.build as b; b.build_editable({str(tmp_path)!r})"
    _run([sys.executable, "-c", script], cwd=ROOT, env=_tools_on_path())
    (built,) = tmp_path.glob("gpuutil-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(built) as archive:
        archive.extractall(site)

    lines = [line for path in site.glob("*.pth") for line in path.read_text().splitlines()]
    added = [line for line in lines if line.strip() and not line.startswith("import ")]
    assert added == [str(ROOT / "python")]
    beside = {path.name for path in (ROOT / "python").iterdir()} - {"__pycache__"}
    assert beside == {"gpuutil"}, "python/ is on sys.path of every user of an editable install"

    names = ("csrc", "hooks", "tests", "examples", "build", "gpuutil.csrc", "gpuutil.tests")
    look = (
        f"import site; site.addsitedir({str(site)!r})\n"
        "import torch, gpuutil, gpuutil.hooks, gpuutil._core, gpuutil._torch, importlib.util as u\n"
        "print(gpuutil.hooks.__file__, gpuutil._torch.__file__, sep='\\n')\n"
        f"for name in {names!r}:\n"
        "    spec = u.find_spec(name)\n"
        "    if spec is not None:\n"
        "        print(*(spec.submodule_search_locations or [spec.origin]), sep='\\n')\n"
    )
    said = _run([*ISOLATED, look], env=_environment(site), cwd=tmp_path).splitlines()
    assert said[0] == str(ROOT / "python/gpuutil/hooks/__init__.py")
    assert Path(said[1]).parent == site / "gpuutil"
    # Packages of such names may well be installed beside torch: only the checkout's are a leak.
    installed = Path(_path_of_torch())
    found = [Path(line) for line in said[2:] if not Path(line).is_relative_to(installed)]
    assert not [path for path in found if path.is_relative_to(ROOT)]
