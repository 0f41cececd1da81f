"""Whether this torch's DataLoader is one on which live changes are safe.

A torch whose files, or at least whose relied-on methods, are token for token those of a tested one is known. On any
other the engine is rehearsed on a toy loader with workers that live in this process, once; the answer is kept in the
user's cache folder. What fails the rehearsal is off, with a reason.

`settle` asks before gpuutil patches the DataLoader: a patched method has another source, and a rehearsal among patches
would be taken for training.

Relied on, both kinds: `_next_data`, `_sampler_iter`, `_index_sampler`, `_num_yielded`,
`_base_seed`, the constructor's fields in `payload.Parts`, and the signature of `_worker_loop`;
without workers `_dataset_fetcher`; with workers the tables that `multi.py` reads and writes,
`_get_data`, `_try_get_data` and `_try_put_index`.
To keep workers between passes: that the constructor makes queues, an event and processes through the
loader's multiprocessing context, and what `handover.py` names of an iterator that has ended well.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import io
import json
import os
import sys
import tokenize
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, _utils, dataloader

from . import rehearsal

VERSION = 1
"""Raised when the engine starts to rely on something else: old answers are void."""
_KNOWN = {"57930c6dcec5e184"}
"""torch 2.13.0 and 2.14.1 have the same code in these methods."""
_KNOWN_FILES = {"c49134a4b8906b22", "4d1a8bd271da859a"}
"""The same two, by the whole of dataloader.py and _utils/worker.py: known without reading the methods one by one."""
_METHODS = (
    (
        "_MultiProcessingDataLoaderIter",
        "_reset _try_get_data _get_data _next_data _try_put_index _process_data "
        "_mark_worker_as_unavailable _shutdown_workers __del__",
    ),
    ("_BaseDataLoaderIter", "__next__ _reset _next_index"),
    ("_SingleProcessDataLoaderIter", "_next_data"),
)
_WORKER_LOOP = [
    "dataset_kind",
    "dataset",
    "index_queue",
    "data_queue",
    "done_event",
    "auto_collation",
    "collate_fn",
    "drop_last",
    "base_seed",
    "init_fn",
    "worker_id",
    "num_workers",
    "persistent_workers",
    "shared_seed",
]


def settle() -> None:
    """Finds both answers, for as long as this process lives. Before anything is patched; a few tenths of a millisecond
    on a known torch, some tens of milliseconds once on another one."""
    for kind in ("single", "multi", "keep"):
        _answer(kind)


def single_problem() -> str | None:
    """Why iterators without workers are left alone; None if they need not be."""
    return _answer("single")


def multi_problem() -> str | None:
    """The same for iterators with workers."""
    return _answer("multi")


def keep_problem() -> str | None:
    """Why workers cannot be kept between passes; None if they can."""
    return _answer("keep")


def _files() -> str | None:
    """Hash of the two files that hold the relied-on code; None where a method does not come from there."""
    for owner, names in _METHODS:
        for name in names.split():
            code = getattr(getattr(getattr(dataloader, owner), name), "__code__", None)
            if code is None or code.co_filename != dataloader.__file__:
                return None
    content = Path(dataloader.__file__).read_bytes() + Path(_utils.worker.__file__).read_bytes()
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def fingerprint() -> str:
    """Hash of the relied-on methods without comments and layout. Raises OSError where torch has no
    sources."""
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    digest = hashlib.sha256()
    for owner, names in _METHODS:
        for name in names.split():
            source = inspect.cleandoc(
                "\n" + inspect.getsource(getattr(getattr(dataloader, owner), name))
            )
            tokens = tokenize.generate_tokens(io.StringIO(source).readline)
            digest.update("".join(t.string for t in tokens if t.type not in skip).encode())
    return digest.hexdigest()[:16]


@functools.cache
def _answer(kind: str) -> str | None:
    if sys.platform != "linux":
        return "live changes to loaders need Linux"
    try:
        names = list(inspect.signature(_utils.worker._worker_loop).parameters)
        names[1] = names[1].removesuffix(
            "_holder"
        )  # newer torch: a list of one, which the worker empties
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        names = [repr(error)]
    if names != _WORKER_LOOP:
        return f"torch {torch.__version__} has another worker loop"
    try:
        if _files() in _KNOWN_FILES or (kind != "keep" and fingerprint() in _KNOWN):
            return None
    except (OSError, AttributeError, TypeError, tokenize.TokenError):
        pass  # no sources, or other names: the rehearsal will tell
    # Keeping relies on the constructors too, and its rehearsal takes a millisecond.
    return rehearse(kind) if kind == "keep" else _cached_rehearsal(kind)


def rehearse(kind: str) -> str | None:
    """Runs a toy loader, `single`, `multi` or `keep`. Starts no process and draws nothing. Returns
    what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two workers may be more than this machine has CPUs
            if kind == "keep":
                _rehearse_keeping()
            else:
                _rehearse(2 if kind == "multi" else 0)
    except Exception as error:
        return f"a rehearsal on torch {torch.__version__} failed: {error!r}"
    return None


def _rehearse(workers: int) -> None:
    """Stock, then served, then handed back, in one epoch; then an epoch served to its end."""
    from .live import LiveLoader

    schedule = rehearsal.Schedule()
    length = 40
    loader = DataLoader(
        range(length), batch_size=None, num_workers=workers, generator=torch.Generator()
    )
    if workers:
        rehearsal.rehearse(loader, schedule)
    live = LiveLoader(
        loader, rehearsal.RehearsalPool(rehearsal.RehearsalTransport(schedule)), checked=True
    )
    for wanted in ((10, workers + 2), (25, workers)), ((0, workers + 1),):
        iterator = iter(loader)
        live.bind(iterator)
        before = type(iterator)
        served, got = 0, []
        for i in range(length):
            for at, count in wanted:
                if i == at:
                    live.request(workers=count, prefetch=3 if count > workers else 2)
            got.append(int(next(iterator)))
            served += live.state.in_flight > 0
        if got != list(range(length)):
            raise AssertionError(f"wrong batches {got}")
        if served < 10 or next(iterator, None) is not None:
            raise AssertionError(f"served {served} of {length} batches as {before.__name__}")
    live.close()


def _rehearse_keeping() -> None:
    """Three epochs with the same two workers, and the draws of three fresh iterators."""
    from . import keep

    loader = DataLoader(
        range(7), batch_size=None, num_workers=2, generator=torch.Generator().manual_seed(1)
    )
    draws = torch.Generator().manual_seed(1)
    context = rehearsal.rehearse(loader, rehearsal.Schedule())
    keeper = keep.Keeper(loader, checked=True)
    keeper.wanted = True
    for turn in range(3):
        iterator = keeper.reopen(loader)
        if (iterator is None) != (turn == 0):
            raise AssertionError(f"pass {turn}: {keeper.problem}")
        if iterator is None:
            iterator = DataLoader._get_iterator(loader)
        keeper.bind(iterator)
        iterator.__class__ = keep.Rehearsed
        seed = torch.empty((), dtype=torch.int64).random_(generator=draws).item()
        got = []
        with contextlib.suppress(StopIteration):
            while True:  # not next(): that is no fetch of the user's
                got.append(int(iterator._next_data()))
        if got != list(range(7)) or iterator._base_seed != seed:
            raise AssertionError(f"pass {turn}: wrong batches {got} or another seed")
    keeper.close()
    if len(context.processes) != 2 or any(p.is_alive() for p in context.processes):
        raise AssertionError("workers were started anew, or live on")


def _cached_rehearsal(kind: str) -> str | None:
    key = f"{VERSION}|{torch.__version__}|{torch.version.git_version}|{sys.version_info[:2]}"
    path = _cache_file(kind)
    try:
        kept = json.loads(path.read_text())
        if kept["key"] == key:
            return kept["problem"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    problem = rehearse(kind)
    with contextlib.suppress(OSError):  # no writable cache folder: the next process rehearses again
        _write(path, {"key": key, "problem": problem})
    return problem


def _cache_file(kind: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "gpuutil" / f"dataloader_{kind}.json"


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    os.replace(temporary, path)
