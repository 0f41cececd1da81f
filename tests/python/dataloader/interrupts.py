"""Ctrl-C at every place of our code where Python could deliver one, one place after the other."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import gpuutil.hooks.dataloader.live as live_module

_OURS = str(Path(live_module.__file__).resolve().parent)
_SKIP = ("rehearsal.py", "capability.py", "randomness.py")


class Pressed(KeyboardInterrupt):
    """The one Ctrl-C of a run."""


def _is_ours(code: CodeType, cache: dict[CodeType, bool]) -> bool:
    if code not in cache:
        path = str(Path(code.co_filename).resolve())
        cache[code] = path.startswith(_OURS) and not path.endswith(_SKIP)
    return cache[code]


_OPS: dict[CodeType, dict[int, bool]] = {}


def _places(code: CodeType) -> dict[int, bool]:
    """Offset -> whether a signal may be delivered before that instruction (after a call, at a
    loop's jump)."""
    if code not in _OPS:
        places, after_call = {}, False
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            places[instruction.offset] = after_call or name.startswith(("RESUME", "JUMP_BACKWARD"))
            after_call = name.startswith(("CALL", "PRECALL")) and name != "PRECALL"
        _OPS[code] = places
    return _OPS[code]


def run_with_interrupt(action: Callable[[], Any], at: int) -> tuple[int, str | None]:
    """Runs `action` and raises Pressed at the `at`-th place. Returns (places seen, where it was
    raised)."""
    seen, where, cache = 0, None, {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen, where
        if not _is_ours(frame.f_code, cache):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode" and where is None and _places(frame.f_code).get(frame.f_lasti):
            seen += 1
            if seen == at:
                name = Path(frame.f_code.co_filename).name
                where = f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
                raise Pressed
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(old)
    return seen, where
