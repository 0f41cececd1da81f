"""The kept changes of an earlier run, read from its report.json: applied at the first step, and nothing is tried."""

from __future__ import annotations

import json
import os
from typing import Any

Change = tuple[str, int, int, int]
"""(remedy, subject, from, to); subjects are loaders, numbered in the order in which a run first iterates them."""


def kept_changes(path: str | os.PathLike[str], source: str) -> list[Change]:
    """What all kept rows of that run's ledger amount to, one change a setting.

    Args:
        path: a report.json.
        source: the name of the argument or variable, for messages.

    Raises:
        TypeError: `path` is not a path.
        ValueError: it cannot be read or is not such a report.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{source} must be the path of a report.json, not {type(path).__name__}")
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        rows = [row for row in report["ledger"] if row["outcome"] == "kept"]
        return _net([change for row in rows for change in row["changes"]])
    except OSError as error:
        raise ValueError(f"{source}: {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{source}: {path} is not a report of gpuutil ({error!r})") from None


def _net(changes: list[dict[str, Any]]) -> list[Change]:
    settings: dict[tuple[str, int], list[int]] = {}
    for change in changes:
        key = str(change["remedy"]), int(change["subject"])
        first = settings.get(key, [int(change["from"])])[0]
        settings[key] = [first, int(change["to"])]
    return [(remedy, subject, a, b) for (remedy, subject), (a, b) in settings.items() if a != b]
