"""`_torch` is loaded beside the PyTorch it was built for, and beside no other."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from gpuutil.hooks import torch_module  # noqa: E402


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stands a `_torch` in whose build file is the caller's; importing it fails the test."""
    running = torch_module.running_torch()._asdict()
    file = tmp_path / "_torch_build.json"
    file.write_text(json.dumps(running))
    spec = SimpleNamespace(origin=str(tmp_path / "_torch.so"))
    monkeypatch.setattr(torch_module.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(torch_module, "_warned", False)

    def refuse(name: str):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr(torch_module.importlib, "import_module", refuse)
    return SimpleNamespace(file=file, running=running, spec=spec)


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("version", "2.8.0", "was built for torch 2.8.0, and this is torch"),
        ("git_version", "0123abc", "was built for another build of torch"),
        ("cxx11_abi", 0, "was built for another build of torch"),
    ],
)
def test_a_module_built_for_another_torch_is_not_loaded_and_one_warning_says_what_to_run(
    beside, caplog, key, value, said
):
    beside.file.write_text(json.dumps({**beside.running, key: value}))
    with caplog.at_level(logging.WARNING, logger="gpuutil"):
        first = torch_module.load(SimpleNamespace())
        second = torch_module.load(SimpleNamespace())
    assert first == second
    module, reason = first
    assert module is None
    assert said in reason
    (warning,) = _warnings(caplog)
    assert reason in warning
    assert torch_module.rebuild_command() in warning


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"version": 1}'])
def test_a_build_file_that_cannot_be_read_is_a_reason_and_not_an_error(beside, caplog, content):
    if content is None:
        beside.file.unlink()
    else:
        beside.file.write_text(content)
    module, reason = torch_module.load(SimpleNamespace())
    assert module is None
    assert "cannot be read" in reason
    assert len(_warnings(caplog)) == 1


def test_a_missing_module_is_a_reason(beside, monkeypatch):
    monkeypatch.setattr(torch_module.importlib.util, "find_spec", lambda name: None)
    assert torch_module.load(SimpleNamespace()) == (None, "gpuutil._torch is not installed")


def test_a_module_that_does_not_load_is_a_reason(beside, monkeypatch):
    def fail(name: str):
        raise ImportError("undefined symbol: _ZN2at\nand more")

    monkeypatch.setattr(torch_module.importlib, "import_module", fail)
    module, reason = torch_module.load(SimpleNamespace())
    assert module is None
    assert reason == "gpuutil._torch does not load (undefined symbol: _ZN2at)"


def test_the_module_of_this_build_loads_and_agrees_with_its_build_file():
    core = importlib.import_module("gpuutil._core")
    module, reason = torch_module.load(core)
    assert reason is None
    assert module.built_for == tuple(torch_module.running_torch())


def test_a_refused_module_is_not_even_mapped():
    script = (
        "import gpuutil.hooks.torch_module as t\n"
        "t.running_torch = lambda: t.TorchBuild('9.9.9', 'f00', 1)\n"
        "print(t.load(None)[1])\n"
        "maps = open('/proc/self/maps').read()\n"
        "print('libtorch_cpu' in maps, '/_torch.' in maps)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import torch\n" + script],
        capture_output=True,
        text=True,
        timeout=120,
    )
    reason, mapped = done.stdout.splitlines()
    assert "this is torch 9.9.9" in reason
    assert mapped == "True False"


def test_the_command_names_the_folder_that_gpuutil_was_installed_from(monkeypatch, tmp_path):
    note = {"url": f"file://{tmp_path}/a%20b", "dir_info": {"editable": True}}
    found = SimpleNamespace(read_text=lambda name: json.dumps(note))
    monkeypatch.setattr(torch_module.importlib.metadata, "distribution", lambda name: found)
    assert torch_module.rebuild_command().endswith(f"--force-reinstall -e '{tmp_path}/a b'")
    note["dir_info"] = {}
    assert torch_module.rebuild_command().endswith(f"--no-cache-dir '{tmp_path}/a b'")
    note["url"] = "https://example.invalid/gpuutil.tar.gz"
    assert torch_module.rebuild_command().endswith("--no-binary gpuutil gpuutil")
