"""Whose error is it? An exception that surfaces inside our code is not always ours."""

from __future__ import annotations

import os
import sysconfig

import torch

_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_TORCH = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")
_STDLIB = os.path.join(os.path.abspath(sysconfig.get_paths()["stdlib"]), "")
_HANDLER = os.path.join("_utils", "signal_handling.py")


def foreign(error: BaseException) -> bool:
    """True if `error` was raised by a signal handler that ran in the middle of our code: the
    user's, or torch's.

    (torch's SIGCHLD handler raises at any bytecode of the main thread when a stock worker is
    killed.) Told by the innermost frame: ours, the standard library's and torch's are the places
    where our own mistakes end up.
    """
    frame = error.__traceback__
    if frame is None:
        return False
    while frame.tb_next is not None:
        frame = frame.tb_next
    path = frame.tb_frame.f_code.co_filename
    if path.startswith("<frozen"):
        return False
    path = os.path.abspath(path)
    if path.endswith(_HANDLER):
        return True
    if path.startswith((_OURS, _TORCH)):
        return False
    installed = f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path
    return installed or not path.startswith(_STDLIB)
