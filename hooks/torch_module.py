"""Loads `gpuutil._torch`, compiled against LibTorch, and only beside the PyTorch it was built for.

The LibTorch ABI changes with every release, and a module built for another one may crash instead of
failing to load. So what it was built for is compared first, from a file beside it, before a byte of
it is mapped.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import shlex
import sys
from types import ModuleType
from typing import Any, NamedTuple

_log = logging.getLogger("gpuutil")
_warned = False


class TorchBuild(NamedTuple):
    """What has to agree between a module and the PyTorch it runs beside."""

    version: str
    git_version: str
    cxx11_abi: int


def load(core: ModuleType) -> tuple[ModuleType | None, str | None]:
    """Loads `_torch` and connects it to the recorder of `core`.

    Args:
        core: The module `gpuutil._core`; `_torch` writes through its ``recorder_capsule()``.

    Returns:
        The module and None, or None and the reason in one sentence. Never raises. The first failure
        in a process is also one warning in the log, with the command that mends it; the Python
        hooks work without `_torch`.
    """
    reason = _mismatch()
    if reason is None:
        try:
            module = importlib.import_module("gpuutil._torch")
            module.connect(core.recorder_capsule())
            return module, None
        except Exception as error:
            reason = f"gpuutil._torch does not load ({_first_line(error)})"
    _warn_once(reason)
    return None, reason


def rebuild_command() -> str:
    """The command that builds gpuutil for the PyTorch of this interpreter, ready for a shell."""
    command = [sys.executable or "python", "-m", "pip", "install", "--no-deps", "--force-reinstall"]
    source, editable = _installed_from()
    if source is None:
        # A cached wheel would be the very module that does not fit.
        command += ["--no-cache-dir", "--no-binary", "gpuutil", "gpuutil"]
    else:
        command += ["-e", source] if editable else ["--no-cache-dir", source]
    return shlex.join(command)


def running_torch() -> TorchBuild:
    """The PyTorch of this process."""
    import torch

    return TorchBuild(
        str(torch.__version__),
        str(torch.version.git_version or ""),
        int(torch.compiled_with_cxx11_abi()),
    )


def _mismatch() -> str | None:
    """Why `_torch` must not be loaded, or None."""
    try:
        built = _built_for()
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"what gpuutil._torch was built for cannot be read ({_first_line(error)})"
    if built is None:
        return "gpuutil._torch is not installed"
    running = running_torch()
    if built == running:
        return None
    if built.version != running.version:
        return (
            f"gpuutil._torch was built for torch {built.version}, "
            f"and this is torch {running.version}"
        )
    return f"gpuutil._torch was built for another build of torch {running.version}"


def _built_for() -> TorchBuild | None:
    # Finding the module does not load it.
    spec = importlib.util.find_spec("gpuutil._torch")
    if spec is None or not spec.origin:
        return None
    path = os.path.join(os.path.dirname(spec.origin), "_torch_build.json")
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return TorchBuild(str(found["version"]), str(found["git_version"]), int(found["cxx11_abi"]))


def _installed_from() -> tuple[str | None, bool]:
    """The folder that gpuutil was installed from, if pip noted one, and whether as editable."""
    try:
        text = importlib.metadata.distribution("gpuutil").read_text("direct_url.json")
        note: dict[str, Any] = json.loads(text or "{}")
        if not str(note.get("url", "")).startswith("file://"):
            return None, False
        from urllib.request import url2pathname

        path = url2pathname(str(note["url"])[len("file://") :])
        return path, bool(note.get("dir_info", {}).get("editable", False))
    except Exception:
        return None, False


def _warn_once(reason: str) -> None:
    global _warned
    if _warned:
        return
    _warned = True
    _log.warning(
        "gpuutil: %s; operators are not observed, everything else works. To mend it: %s",
        reason,
        rebuild_command(),
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
