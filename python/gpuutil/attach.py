"""`attach`: the one line that a user adds."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from .config import Config, as_config, disabled, log_directory, resolve_apply, rung
from .environment import asks_for_determinism, inert_child, unsupported
from .monitor import Monitor
from .replay import Change, kept_changes

_lock = threading.Lock()
_current: Monitor | None = None


def attach(
    model: Any = None,
    *,
    optimizer: Any = None,
    loader: Any = None,
    apply: str | None = None,
    replay: str | os.PathLike[str] | None = None,
    log_dir: str | os.PathLike[str] | bool | None = None,
    config: Config | Mapping[str, Any] | None = None,
) -> Monitor:
    """Watches this process's training from now on, and fixes what may be fixed.

    A second call returns the same monitor and adds a label: there is one engine in a process. Nothing is changed
    before the loop runs, and everything is taken back by `Monitor.detach`.

    Args:
        model: a torch.nn.Module; held weakly and only a label. None watches the whole process.
        optimizer: a torch.optim.Optimizer; likewise.
        loader: the DataLoader that feeds training, where a running loop is attached to in its middle.
        apply: the rung of what may be changed unasked: "observe" < "exact" < "auto" < "precision" < "all". Default:
            GPUUTIL_APPLY, else "auto"; "exact" at most where the run asks for determinism. GPUUTIL_APPLY_MAX is a
            ceiling over all of them.
        replay: a report.json of an earlier run: its kept changes are applied at the first step and nothing is tried,
            so that seeded runs repeat. Default: GPUUTIL_REPLAY.
        log_dir: folder for report files; default `gpuutil_logs/<run id>`. False writes none.
        config: a Config, or a mapping of its settings.

    Returns:
        The monitor. Where gpuutil can do nothing (not Linux, a worker process, GPUUTIL_DISABLE=1) it is idle and
        says why.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
    """
    global _current
    settings = as_config(config)
    if apply is not None:
        rung(apply, "apply")
    log_directory(log_dir)
    resolve_apply(apply, None)
    changes: list[Change] | None = None
    if replay is not None:
        changes = kept_changes(replay, "replay")
    elif os.environ.get("GPUUTIL_REPLAY"):
        changes = kept_changes(os.environ["GPUUTIL_REPLAY"], "GPUUTIL_REPLAY")
    reason = "GPUUTIL_DISABLE is set" if disabled() else unsupported() or inert_child()
    if reason is not None:
        return Monitor(None, reason)
    try:
        import torch
    except ImportError:
        raise ImportError("gpuutil needs PyTorch in this environment: pip install torch") from None
    _check(model, "model", torch.nn.Module)
    _check(optimizer, "optimizer", torch.optim.Optimizer)
    _check(loader, "loader", torch.utils.data.DataLoader)

    from .session import Session

    with _lock:
        if _current is None or not _current.active:
            chosen, why = resolve_apply(apply, asks_for_determinism())
            try:
                session = Session(chosen, why, apply is not None, settings, log_dir, changes)
            except Exception as error:  # the run must go on whatever is wrong with us
                from .sinks.log import logger

                logger.warning("gpuutil could not attach and watches nothing: %r", error)
                return Monitor(None, f"attach failed: {error!r}")
            _current = Monitor(session)
        assert _current._session is not None
        _current._session.add_label(model, optimizer, loader)
        return _current


def _check(value: Any, name: str, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__module__}.{kind.__qualname__}, not {type(value).__name__}")


def _forget_in_child() -> None:
    """After a fork the child's engine has no thread and its hooks are inert: a fresh attach may start anew."""
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None and _current._session is not None:
        _current._session.abandon()
    _current = None


os.register_at_fork(after_in_child=_forget_in_child)
