"""Carries out the controller's commands, one at a time, on the threads where they are safe."""

from __future__ import annotations

import dataclasses
import threading
from types import ModuleType
from typing import Any

from .loaders import LoaderWatch
from .remedies import ALL, NotPossible
from .sinks.log import logger


@dataclasses.dataclass
class _Part:
    remedy: str
    subject: int
    old: int
    new: int


@dataclasses.dataclass
class _Work:
    command: int
    waiting: list[_Part]
    done: list[_Part]
    revert: bool


class Hands:
    """Between the engine's controller (what) and the remedies (how).

    A command is a list of changes that only make sense together. Loader parts are applied on the thread that
    consumes the loader, at a fetch; parts of the process wait until the loader parts are in effect, so that the
    trainer does not give up a thread while the workers are still starting. If a part fails, the parts already done
    are taken back and the whole command has failed.
    """

    def __init__(self, core: ModuleType, loaders: LoaderWatch) -> None:
        self._core = core
        self._loaders = loaders
        self._work: _Work | None = None
        self._training_thread: int | None = None

    @property
    def busy(self) -> bool:
        return self._work is not None

    def at_boundary(self, where: str, subject: Any) -> None:
        """Called at a fetch (`subject`: the iterator) or a step (`subject`: the optimizer) with something to do."""
        thread = threading.get_ident()
        if where == "step":
            self._training_thread = thread
        source = getattr(subject, "_gpuutil_source", 0) if where == "fetch" else 0
        if self._work is None:
            command = self._core.next_command()
            if command is None:
                return
            parts = [
                _Part(c["remedy"], c["subject"], *(
                    (c["to"], c["from"]) if command["kind"] == "revert" else (c["from"], c["to"])
                ))
                for c in command["changes"]
            ]
            revert = command["kind"] == "revert"
            # The process gives its thread up last and takes it back first.
            parts.sort(key=lambda part: list(ALL).index(part.remedy), reverse=revert)
            self._work = _Work(command["id"], parts, [], revert)
        self._advance(source, thread)

    def _advance(self, source: int, thread: int) -> None:
        work = self._work
        assert work is not None
        try:
            while work.waiting:
                part = work.waiting[0]
                remedy = ALL[part.remedy]
                if part.subject:
                    subject = self._loaders.by_id(part.subject)
                    if not self._loaders.has_seen(part.subject):
                        return
                    if subject is None or subject.reference() is None:
                        if work.revert:
                            work.waiting.pop(0)  # a loader that is gone has nothing left to undo
                            continue
                        raise NotPossible("the loader is gone")
                    if source != part.subject:
                        return
                    self._loaders.make_changeable(subject)
                    remedy.apply(subject, part.new)
                else:
                    if not self._in_effect(work) or thread not in (self._training_thread, None):
                        return
                    remedy.apply(None, part.new)
                if not work.done:
                    self._core.command_applied(work.command)
                work.done.append(work.waiting.pop(0))
            if self._in_effect(work):
                self._work = None
                self._core.command_effective(work.command)
        except NotPossible as error:
            self._fail(work, str(error))

    def _in_effect(self, work: _Work) -> bool:
        for part in work.done:
            if not part.subject:
                continue
            subject = self._loaders.by_id(part.subject)
            if subject is None or subject.live is None:
                continue
            remedy = ALL[part.remedy]
            failure = remedy.failure(subject)
            if failure is not None:
                raise NotPossible(failure)
            if not remedy.in_effect(subject):
                return False
        return True

    def _fail(self, work: _Work, reason: str) -> None:
        self._work = None
        for part in reversed(work.done):
            try:
                subject = self._loaders.by_id(part.subject) if part.subject else None
                if part.subject == 0 or subject is not None:
                    ALL[part.remedy].apply(subject, part.old)
            except NotPossible as error:
                logger.warning("%s could not be taken back: %s", part.remedy, error)
        self._core.command_failed(work.command, reason)
