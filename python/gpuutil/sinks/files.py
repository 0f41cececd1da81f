"""Report files of one run: `epochs.jsonl`, `report.json`. Whole or absent at any instant, private to the user."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


class RunFolder:
    """A folder for one run's files.

    Directories are 0700 and files 0600; no symbolic link is followed for a file. Nothing here raises after
    construction: a full or read-only disk leaves `problem` set and the training alone.

    Args:
        path: the folder to make.
        parent_is_ours: `path` lies in gpuutil's own default folder, which gets a `.gitignore` and is kept small.
        keep_runs: runs kept there, this one included.
        keep_bytes: bytes kept there.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(
        self, path: Path, parent_is_ours: bool, keep_runs: int = 20, keep_bytes: int = 50_000_000
    ) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self.problem: str | None = None
        if parent_is_ours:
            ignore = path.parent / ".gitignore"
            if not ignore.exists():
                self.write(ignore.name, "*\n", folder=path.parent)
            _prune(path.parent, keep_runs, keep_bytes, spare=path)

    def write(self, name: str, text: str, folder: Path | None = None) -> None:
        """Replaces a file as one atomic act: a kill leaves the old or the new text, never a part."""
        target = (folder or self.path) / name
        partial = target.with_name(f".{name}.{os.getpid()}.part")
        try:
            descriptor = os.open(
                partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(partial, target)
        except OSError as error:
            self.problem = f"{target.name}: {error.strerror or error}"
            with contextlib.suppress(OSError):
                os.unlink(partial)

    def append(self, name: str, line: str) -> None:
        """Adds one line with one write call, so that readers never see half of it."""
        try:
            descriptor = os.open(
                self.path / name,
                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
            try:
                os.write(descriptor, (line + "\n").encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            self.problem = f"{name}: {error.strerror or error}"


def _size(folder: Path) -> int:
    total = 0
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_size
    return total


def _prune(parent: Path, keep_runs: int, keep_bytes: int, spare: Path) -> None:
    """Removes the oldest runs beyond either limit; only folders that hold a report of ours."""
    with contextlib.suppress(OSError):
        runs = [
            (entry.stat(follow_symlinks=False).st_mtime, Path(entry.path))
            for entry in os.scandir(parent)
            if entry.is_dir(follow_symlinks=False)
            and Path(entry.path) != spare
            and (Path(entry.path) / "report.json").is_file()
        ]
        total = 0
        for position, (_, folder) in enumerate(sorted(runs, reverse=True), start=1):
            total += _size(folder)
            if position >= keep_runs or total > keep_bytes:
                shutil.rmtree(folder, ignore_errors=True)
