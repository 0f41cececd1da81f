"""One attachment: hooks in, engine on; and everything out again. `Monitor` is its face."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import _core, environment, inherited, remedies
from .archive import Archive
from .config import Config, log_directory
from .hands import Hands
from .hooks import torch_module
from .hooks.dataloader import capability
from .hooks.dataloader.patch import patch_dataloader
from .hooks.optimizer import OptimizerHook
from .hooks.patching import PatchStack
from .loaders import LoaderWatch
from .replay import Change
from .sinks.files import RunFolder
from .sinks.log import LogSetup, logger
from .sinks.writer import Writer


class Session:
    """Everything between attach and detach.

    The engine's own thread folds and decides; this object is entered on the user's threads only where something is
    to be done (`_boundary`), at the end of a pass over a loader (`_exhausted`) and by the public calls. An error of
    ours is logged once and switches gpuutil off; it never reaches the training loop.

    Args:
        apply: the rung that holds.
        apply_reason: why it is not the one asked for, or "".
        explicit: the rung was given in code, so that a run that asks for determinism does not lower it.
        config: settings.
        log_dir: as given to attach.
        replay: changes of an earlier run to apply instead of trying any; None tries.
    """

    def __init__(
        self,
        apply: str,
        apply_reason: str,
        explicit: bool,
        config: Config,
        log_dir: Any,
        replay: list[Change] | None = None,
    ) -> None:
        self.active = False
        self._limit_late = not explicit
        self._pid = os.getpid()
        self._config = config
        self._labels: list[weakref.ref[Any]] = []
        self._log = LogSetup()
        self._patches = PatchStack()
        self._hook: OptimizerHook | None = None
        self._writer: Writer | None = None
        self._closing = threading.Lock()
        self._archive: Archive | None = None
        self._last_exhausted = 0.0
        rank, ranks = environment.ranks()
        self._loaders = LoaderWatch(_core, changes=apply != "observe" and ranks == 1, offers=remedies.offers)
        self._hands = Hands(_core, self._loaders)
        self._torch, missing = torch_module.load(_core)
        self._folder = self._open_folder(log_dir, rank)
        _core.start(
            apply=apply,
            ranks=ranks,
            startup_steps=config.startup_steps if self._torch is not None else 0,
            period_seconds=config.period_seconds,
            host_period_seconds=config.host_period_seconds,
            start_credit_seconds=config.start_credit_seconds,
            regret_ratio=config.regret_ratio,
            max_workers=config.max_workers or 0,
            device_is_host=True,  # until CUDA is seen in use: asking whether there is a device would wake it
            main_threads=torch.get_num_threads(),
            inherited_cpus=len(inherited.CPUS),
            stop_file="" if self._folder is None else str(self._folder.path / "STOP"),
            log_dir="" if self._folder is None else str(self._folder.path),
            environment=json.dumps(environment.facts()),
            missing=[missing] if missing else [],
            replay=replay,
            version=_version(),
            torch_version=torch.__version__,
            python_version=platform.python_version(),
            rank=rank,
        )
        try:
            capability.settle()
            _core.set_callbacks(self._boundary, self._exhausted, self._loaders.resolve)
            self._hook = OptimizerHook(_core)
            patch_dataloader(_core, self._patches, self._loaders.loader_id, self._bind, self._reopen)
            if self._folder is not None:
                self._writer = Writer()
        except BaseException:
            self._take_out()
            raise
        self.active = True
        atexit.register(self._at_exit)
        _core.set_hook_cost(_core.hot_path_cost_ns(200))
        if apply_reason:
            logger.info("changes are limited to %r: %s", apply, apply_reason)

    # ---- called from the hot path, on the user's threads

    def _bind(self, loader: Any, iterator: Any) -> None:
        """A new pass over a loader: the time to look at what scripts set up after attach."""
        if not self.active:
            return
        try:
            with _core.own_time():
                cuda = torch.version.cuda is not None and torch.cuda.is_initialized()
                _core.set_process(
                    device_is_host=not cuda,
                    main_threads=torch.get_num_threads(),
                    ranks=environment.ranks()[1],
                )
                reason = environment.asks_for_determinism() if self._limit_late else None
                if reason is not None:
                    self._limit_late = False
                    _core.limit_apply("exact")
                self._loaders.bind(loader, iterator)
        except Exception as error:
            self._fail(error)

    def _reopen(self, loader: Any) -> Any:
        """A new pass with the workers of the one before, or None. An error in it is the user's own."""
        return self._loaders.reopen(loader) if self.active else None

    def _boundary(self, where: str, subject: Any) -> None:
        if not self.active:
            return
        try:
            with _core.own_time():
                self._hands.at_boundary(where, subject)
                self._loaders.tell_all()
                self._report()
                _core.rest(self._hands.busy or self._loaders.unsettled)
        except Exception as error:
            self._fail(error)

    def _exhausted(self, iterator: Any) -> None:
        if not self.active:
            return
        now = time.monotonic()
        if now - self._last_exhausted < 0.1:
            return  # many tiny epochs: the engine's thread finds them, and the next step fetches their reports
        self._last_exhausted = now
        try:
            with _core.own_time():
                self._loaders.tell_all()
                _core.flush()
                self._report()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        logger.warning("gpuutil met an error of its own and switches itself off: %r", error, exc_info=error)
        self.close()

    def _report(self) -> None:
        """Logs what the engine has to say and hands the files to the writer thread."""
        for line in _core.take_lines():
            logger.info("%s", line)
        epochs = _core.take_epochs()
        for text, values, quiet in epochs:
            if not quiet:
                logger.info("%s", text)
            self._write(lambda folder, values=values: folder.append("epochs.jsonl", values))
        if epochs and self._folder is not None:
            run = _core.run_json()
            self._write(lambda folder: folder.write("report.json", run))

    # ---- public calls

    def add_label(self, model: Any, optimizer: Any, loader: Any) -> None:
        for thing in (model, optimizer):
            if thing is not None:
                self._labels.append(weakref.ref(thing))
        if loader is not None:
            self._loaders.watch(loader).tell(_core)

    def read(self) -> Archive:
        """Everything that can be read now; after the end, what could be read then."""
        if self._archive is None:
            _core.flush()
            return Archive.of(_core)
        return self._archive

    def postfix(self) -> dict[str, str]:
        return dict(_core.postfix()) if self.active else {}

    def apply(self, remedy_id: str, value: int | None) -> str:
        if not self.active:
            return "detached"
        if environment.ranks()[1] == 1:
            self._loaders.allow_changes()
        return _core.request_apply(remedy_id, value)

    def revert(self, ledger_id: int) -> str:
        return _core.request_revert(ledger_id) if self.active else "detached"

    def mark_epoch(self, n: int) -> None:
        if not self.active:
            return
        _core.mark_epoch(n)
        _core.flush()
        self._report()

    def mark_step(self) -> contextlib.AbstractContextManager[None]:
        _core.mark_step()
        return _StepBlock()

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        _core.span_begin(name)
        try:
            yield
        finally:
            _core.span_end(name)

    # ---- the end

    def close(self) -> None:
        """Takes everything out. The last report is written; what was learnt stays readable."""
        if os.getpid() != self._pid or not self._closing.acquire(blocking=False):
            return
        if not self.active:
            return
        self.active = False
        atexit.unregister(self._at_exit)
        with contextlib.suppress(Exception):
            _core.finish()
            self._report()
        archive = Archive.of(_core)
        self._take_out()
        self._archive = archive
        self._write(lambda folder: folder.write("report.json", archive.run_json))
        if self._writer is not None:
            self._writer.close()
        self._log.restore()

    def abandon(self) -> None:
        """In a forked child: the engine's thread does not exist here, and its locks may be held for ever.

        Only takes our attributes out of torch's classes, so that a child that attaches for itself is not watched twice.
        """
        self.active = False
        self._archive = Archive([], "[]", "[]", "", "{}", "forked")
        if self._hook is not None:
            self._hook.remove()
        self._patches.undo()
        _core.abandon()

    def _take_out(self) -> None:
        """Order matters: no new events, then no changes, then no patches, then no thread."""
        _core.detach_hooks()
        if self._hook is not None:
            self._hook.remove()
        self._loaders.close()
        for remedy in remedies.ALL.values():
            remedy.restore()
        for sentence in self._patches.undo():
            logger.warning("%s", sentence)
        _core.stop()
        _core.discard()

    def _at_exit(self) -> None:
        self.close()

    # ---- files

    def _open_folder(self, log_dir: Any, rank: int) -> RunFolder | None:
        chosen = log_directory(log_dir)
        if chosen is None or rank != 0:
            return None
        path, own = chosen
        if own:
            path = path / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        try:
            return RunFolder(path, own, self._config.keep_runs, self._config.keep_bytes)
        except OSError as error:
            logger.warning("no report files: %s: %s", path, error.strerror or error)
            return None

    def _write(self, job: Callable[[RunFolder], None]) -> None:
        folder, writer = self._folder, self._writer
        if folder is None or writer is None:
            return

        def run() -> None:
            job(folder)
            if folder.problem is not None:
                problem, folder.problem = folder.problem, None
                raise OSError(problem)

        writer.submit(run)


def _version() -> str:
    from . import __version__

    return __version__


class _StepBlock:
    """`with mon.step():` ends the step at the end of the block too."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        _core.mark_step()
