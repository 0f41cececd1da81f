"""fd_limit: the soft limit of open descriptors, raised to the hard one."""

from __future__ import annotations

import resource
from typing import Any

from .base import NotPossible, Offer

_MOST = 1 << 20
"""Some containers have a hard limit of a thousand million, and some programs close every number up to the soft one
before they start another."""


class FdLimit:
    """`value` is the soft limit of this process. Guards the run and gains no time, so that no trial is made of it.

    Nothing of training reads the limit; programs that the script starts meanwhile inherit it.
    """

    id = "fd_limit"

    def __init__(self) -> None:
        self._user: int | None = None
        self._ours: int | None = None
        self._told: int | None = None

    def offer(self, subject: Any, loader: Any) -> Offer:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # What this class set last, also where the script moved it since: the controller holds us to that.
        now = soft if self._told is None else self._told
        if self._ours is not None:
            return self._offer(now, now)
        to = _reachable(hard)
        if soft == resource.RLIM_INFINITY or soft >= to:
            return self._offer(now, now, "the soft limit is the hard one already")
        return self._offer(now, to)

    def _offer(self, now: int, to: int, refusal: str = "") -> Offer:
        return Offer(self.id, now, to, refusal=refusal, protective=True, of_process=True)

    def apply(self, subject: Any, value: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._user is not None and value == self._user:
            self.restore()
            self._told = value
            return
        wanted = min(value, _reachable(hard))
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            self._told = value  # a replay where the limit is no lower than what was asked for
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:
            raise NotPossible(f"the limit of open files could not be raised: {error}") from None
        if self._user is None:
            self._user = soft
        self._ours, self._told = wanted, value

    def in_effect(self, subject: Any) -> bool:
        return True

    def failure(self, subject: Any) -> str | None:
        return None

    def restore(self) -> None:
        """The user's own limit again, unless somebody set another one since."""
        if self._user is not None:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            if soft == self._ours:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._user, hard))
        self._user = self._ours = self._told = None


def _reachable(hard: int) -> int:
    return _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
