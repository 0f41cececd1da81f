"""Which way a new worker process is started: the way that the stock loader would take here, or a
reason why not."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from typing import Any

from .refusal import NotPossible

_HARMLESS_CALLS = {
    "append", "basicConfig", "extend", "filterwarnings", "insert", "manual_seed", "seed",
    "setLevel", "simplefilter", "update",
}  # fmt: skip


def choose(loader: Any) -> str:
    """The start method's name. Does not fix the process's default, as `get_start_method()` would.

    Raises:
        NotPossible: no process may be started here.
    """
    if multiprocessing.current_process().daemon:
        raise NotPossible("this process is a daemon and may not start processes")
    context = loader.multiprocessing_context
    if context is not None:
        method = context.get_start_method(allow_none=True) or _default()
    else:
        method = _default()
    if method not in ("fork", "forkserver", "spawn"):
        raise NotPossible(f"unknown start method {method!r}")
    return method


def _default() -> str:
    fixed = multiprocessing.get_start_method(allow_none=True)
    return fixed if fixed is not None else multiprocessing.get_all_start_methods()[0]


def imports_main(payload: bytes) -> bool:
    """Whether a child has to import the main script to unpickle `payload`.

    Without need it does not: then even a script without a main guard is safe, it ran once.

    Raises:
        NotPossible: it has to, and the script is not safe to import.
    """
    if b"__main__" not in payload:
        return False
    problem = main_problem(getattr(sys.modules.get("__main__"), "__file__", None))
    if problem is not None:
        raise NotPossible(
            "the data set needs the main script, which a worker process cannot import safely: "
            f"{problem}"
        )
    return True


def main_problem(path: str | None) -> str | None:
    """Why importing the script at `path` could do work a second time; None if it only defines
    things."""
    if path is None:
        return "it has no file (an interactive session)"
    try:
        with open(path, "rb") as file:
            body = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError) as error:
        return f"it is not readable ({error})"
    for node in body:
        if isinstance(node, (ast.For, ast.While, ast.With, ast.AsyncFor, ast.AsyncWith)):
            return f"line {node.lineno} is outside of a main guard"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if not (isinstance(function, ast.Attribute) and function.attr in _HARMLESS_CALLS):
                return f"the call in line {node.lineno} is outside of a main guard"
    return None
