"""The logger `gpuutil`: one line of the user's code must be enough to see the report (DESIGN 10)."""

from __future__ import annotations

import logging

logger = logging.getLogger("gpuutil")


class LogSetup:
    """Makes the logger audible where the user set nothing up; `restore` takes that back.

    After a plain ``logging.basicConfig()`` the root is at WARNING and INFO of a library would be invisible, so a
    level of NOTSET becomes INFO. A handler is added only if neither this logger nor the root has one.
    """

    def __init__(self) -> None:
        self._level: int | None = None
        self._handler: logging.Handler | None = None
        if logger.level == logging.NOTSET:
            self._level = logger.level
            logger.setLevel(logging.INFO)
        if not logger.handlers and not logging.getLogger().handlers:
            self._handler = logging.StreamHandler()  # standard error
            self._handler.setFormatter(logging.Formatter("[gpuutil] %(message)s"))
            logger.addHandler(self._handler)

    def restore(self) -> None:
        """Puts level and handlers back, unless the user changed them since."""
        if self._handler is not None:
            logger.removeHandler(self._handler)
            self._handler = None
        if self._level is not None and logger.level == logging.INFO:
            logger.setLevel(self._level)
        self._level = None
