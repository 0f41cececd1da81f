"""What pyproject.toml promises to pip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _names(requirements: list[str]) -> list[str]:
    return [re.match(r"[\w.-]+", text).group().lower() for text in requirements]


def test_torch_is_neither_a_build_requirement_nor_a_dependency(project: dict):
    asked = project["build-system"]["requires"] + project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        asked += extra
    assert not [name for name in _names(asked) if name.startswith("torch")]


def test_the_set_up_script_installs_the_build_requirements(project: dict):
    script = (ROOT / "examples/setup_env.sh").read_text()
    tools = re.search(r"^BUILD_TOOLS=\(([^)]*)\)", script, re.MULTILINE)
    assert tools is not None
    assert sorted(tools.group(1).split()) == sorted(_names(project["build-system"]["requires"]))


def test_the_scripts_ask_for_extras_that_exist(project: dict):
    extras = project["project"]["optional-dependencies"]
    for script in ("examples/demo.sh", "tests/run.sh"):
        asked = re.findall(r"^setup_environment (\S+)", (ROOT / script).read_text(), re.MULTILINE)
        assert len(asked) == 1, script
        assert set(asked[0].split(",")) <= set(extras), script


def test_the_oldest_supported_python_is_said_once_and_the_same_everywhere(project: dict):
    assert project["project"]["requires-python"] == ">=3.10"
    assert project["tool"]["ruff"]["target-version"] == "py310"
    assert "find_package(Python 3.10 " in (ROOT / "csrc/cmake/GpuutilPython.cmake").read_text()
