"""Arrows between layers point one way (the layers of csrc/CMakeLists.txt; hooks alone knows the framework)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def _allowed() -> dict[str, set[str]]:
    """Layer -> layers that it may include, read from the build itself."""
    text = (ROOT / "csrc/CMakeLists.txt").read_text()
    layers = {}
    for name, below in re.findall(r"^gpuutil_layer\((\w+)([^)]*)\)", text, re.MULTILINE):
        layers[name] = {name, *below.split()}
    return layers


def _cpp_arrows() -> list[tuple[Path, str, str]]:
    arrows = []
    for path in sorted((ROOT / "csrc").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for included in INCLUDE.findall(path.read_text()):
            arrows.append((path, path.relative_to(ROOT / "csrc").parts[0], included))
    return arrows


def test_csrc_layers_include_only_the_layers_below_them():
    allowed = _allowed()
    assert set(allowed) >= {"base", "record", "timeline", "profile", "diagnose", "tune", "report", "engine"}
    wrong = []
    seen = 0
    for path, layer, included in _cpp_arrows():
        target = included.split("/")[0]
        if layer in allowed and target in allowed:
            seen += 1
            if target not in allowed[layer]:
                wrong.append(f"{path.relative_to(ROOT)} includes {included}")
    assert seen > 20
    assert not wrong, "\n".join(wrong)


def test_csrc_knows_neither_torch_nor_python_outside_bindings():
    foreign = re.compile(r"^(torch|ATen|c10|pybind11)/|^Python\.h$")
    wrong = [
        f"{path.relative_to(ROOT)} includes {included}"
        for path, layer, included in _cpp_arrows()
        if foreign.match(included)
        and (layer != "bindings" or not (included == "Python.h" or included.startswith("pybind11/")))
    ]
    assert not wrong, "\n".join(wrong)


def test_only_hooks_torch_includes_libtorch():
    for path in sorted(ROOT.glob("hooks/**/*.[hc]*")):
        if path.suffix in (".h", ".cpp") and any(
            re.match(r"^(torch|ATen|c10)/", included) for included in INCLUDE.findall(path.read_text())
        ):
            assert path.parent == ROOT / "hooks/torch", path


def _python_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_hooks_know_nothing_of_the_package_above_them():
    for path in sorted((ROOT / "hooks").rglob("*.py")):
        depth = len(path.relative_to(ROOT / "hooks").parts)
        for name in _python_imports(path):
            dots = len(name) - len(name.lstrip("."))
            assert dots <= depth, f"{path} imports {name}"
            assert not name.startswith("gpuutil"), f"{path} imports {name}"


def test_sinks_know_neither_torch_nor_the_engine():
    for path in sorted((ROOT / "python/gpuutil/sinks").rglob("*.py")):
        for name in _python_imports(path):
            assert name.split(".")[0] != "torch" and "_core" not in name, f"{path} imports {name}"


def test_library_code_never_prints():
    for folder in ("python/gpuutil", "hooks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name in ("cli.py", "doctor.py") or "hooks" in path.parts[len(ROOT.parts) + 1 :]:
                continue
            calls = [
                node.lineno
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
            ]
            assert not calls, f"{path}:{calls}"
