"""`gpuutil doctor`: what can be measured and changed here, and why not."""

from __future__ import annotations

import platform
from collections.abc import Iterator

TESTED = ("2.13",)
LIKELY = ("2.9", "2.10", "2.11", "2.12", "2.14")


def torch_support(version: str) -> str:
    """What is known of a torch version: "tested", "should work" or "unknown: probed at attach"."""
    short = ".".join(version.split("+")[0].split(".")[:2])
    if short in TESTED:
        return "tested"
    return "should work" if short in LIKELY else "unknown: probed at attach"


def examine() -> Iterator[str]:
    """One line a part."""
    from . import __version__
    from .config import RUNGS, disabled, resolve_apply
    from .environment import asks_for_determinism, ranks, unsupported

    yield f"gpuutil {__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    problem = unsupported()
    if problem is not None:
        yield problem
        return
    try:
        import torch
    except ImportError:
        yield "torch: missing; pip install torch"
        return
    yield f"torch: {torch.__version__} ({torch_support(torch.__version__)})"

    from . import _core
    from .hooks import torch_module
    from .hooks.dataloader import capability

    module, reason = torch_module.load(_core)
    yield f"operators, phases: {'observed' if module is not None else reason}"
    for problem, name in (
        (capability.single_problem, "loaders without workers"),
        (capability.multi_problem, "loaders with workers"),
    ):
        why = problem()
        yield f"live changes, {name}: {'possible' if why is None else 'off: ' + why}"
    for name, text in _core.host_lines():
        yield f"{name}: {text}"
    rank, count = ranks()
    if count > 1:
        yield f"ranks: this is {rank} of {count}; gpuutil observes and advises only"
    if disabled():
        yield "GPUUTIL_DISABLE is set: attach does nothing"
    chosen, why = resolve_apply(None, asks_for_determinism())
    yield f"changes made unasked: up to {chosen!r} of {' < '.join(RUNGS)}{' (' + why + ')' if why else ''}"
