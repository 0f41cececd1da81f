"""`Monitor`: what `attach` returns. The public surface; the work is done in `session.py` and the engine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session


class EpochReport:
    """One epoch: `str()` for people, `to_dict()` with the keys of `epochs.jsonl` (base units and ratios)."""

    def __init__(self, text: str, values: dict[str, Any]) -> None:
        self._text = text
        self._values = values

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<EpochReport {self._text.splitlines()[0] if self._text else 'empty'}>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self._text)}</pre>"

    def to_dict(self) -> dict[str, Any]:
        return self._values


class Monitor:
    """A running observation. One per process; every method is safe to call at any time, also after `detach`."""

    def __init__(self, session: Session | None, idle_reason: str = "") -> None:
        self._session = session
        self._idle_reason = idle_reason

    def __repr__(self) -> str:
        if self._session is None:
            return f"<gpuutil.Monitor idle: {self._idle_reason}>"
        return f"<gpuutil.Monitor {self._session.read().state_line}>"

    @property
    def active(self) -> bool:
        """False when detached, or where gpuutil can do nothing."""
        return self._session is not None and self._session.active

    @property
    def idle_reason(self) -> str:
        """Why nothing is watched, in one line; empty while it is."""
        return self._idle_reason

    # ---- what was seen

    def report(self, epoch: int = -1) -> EpochReport | None:
        """The report of a finished epoch, -1 for the last one; None while there is none.

        Raises:
            TypeError: `epoch` is not an int.
        """
        if isinstance(epoch, bool) or not isinstance(epoch, int):
            raise TypeError(f"epoch must be an int, not {type(epoch).__name__}")
        if self._session is None:
            return None
        found = self._session.read().epoch(epoch)
        return None if found is None else EpochReport(found[0], json.loads(found[1]))

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Causes found in the current window, ranked by the low end of their predicted gain."""
        return [] if self._session is None else json.loads(self._session.read().findings_json)

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """Every trial: what, why, when, before, after, and how it ended."""
        return [] if self._session is None else json.loads(self._session.read().ledger_json)

    def recipe(self) -> str:
        """The lines of code that make the kept changes permanent, and the line that replays them."""
        return "" if self._session is None else self._session.read().recipe

    def postfix(self) -> dict[str, str]:
        """A small dict for a progress bar."""
        return {} if self._session is None else self._session.postfix()

    # ---- what to do

    def apply(self, remedy_id: str, value: int | None = None) -> str:
        """Asks for a remedy by hand, whatever the rung; it is done at the next boundary, measured once and kept.

        Args:
            remedy_id: "loader_workers", "loader_prefetch", "loader_persistent" or "main_threads".
            value: the number wanted; None takes the one that is predicted to be best.

        Returns:
            "" where it will be done, else why not, in one line.

        Raises:
            TypeError, ValueError: `remedy_id` is not the id of a remedy, or `value` not a number.
        """
        from .remedies import ALL

        if not isinstance(remedy_id, str):
            raise TypeError(f"remedy_id must be a str, not {type(remedy_id).__name__}")
        if remedy_id not in ALL:
            raise ValueError(f"remedy_id must be one of {', '.join(ALL)}, got {remedy_id!r}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"value must be an int, not {type(value).__name__}")
        return self._idle_reason if self._session is None else self._session.apply(remedy_id, value)

    def revert(self, ledger_id: int) -> str:
        """Takes a change back at the next boundary. Returns "" where it will be done, else why not.

        Raises:
            TypeError, ValueError: no kept change has that id.
        """
        if isinstance(ledger_id, bool) or not isinstance(ledger_id, int):
            raise TypeError(f"ledger_id must be an int, not {type(ledger_id).__name__}")
        return self._idle_reason if self._session is None else self._session.revert(ledger_id)

    def step(self) -> contextlib.AbstractContextManager[None]:
        """Says that a step ends here; or, as a context manager, that one lasts as long as the block."""
        if self._session is None:
            return contextlib.nullcontext()
        return self._session.mark_step()

    def epoch(self, n: int) -> None:
        """Says that epoch `n` begins here. From then on only these calls end epochs.

        Raises:
            TypeError: `n` is not an int.
        """
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"n must be an int, not {type(n).__name__}")
        if self._session is not None:
            self._session.mark_epoch(n)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Names what the block does: 'evaluation', 'checkpoint' or 'logging'.

        Raises:
            ValueError: another name.
        """
        if name not in ("evaluation", "checkpoint", "logging"):
            raise ValueError(f"name must be evaluation, checkpoint or logging, got {name!r}")
        if self._session is None:
            yield
            return
        with self._session.span(name):
            yield

    def detach(self) -> None:
        """Undoes every change, takes every hook out, ends every thread. The reports stay readable."""
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.detach()
