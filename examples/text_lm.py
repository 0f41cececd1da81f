#!/usr/bin/env python3
"""Trains a byte-level language model on Python's own library: nothing here for gpuutil to change.

The input is an IterableDataset, so the number of workers is the dataset's business: each worker
would hand out the whole stream again unless the dataset shares it out. And it is cheap beside the
GRU, so there would be nothing to win. The example shows what gpuutil says then, and that it costs
nothing to have it there.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset

from _arms import Comparison, compare, parser
from _entry import ExampleError, run_main
from _recorder import Recorder, run_arm
from _summary import print_acts, print_remarks, print_table, say

BATCH = 16
LENGTH = 96
MODULES = 8


def library_modules(count: int, seed: int) -> list[Path]:
    """Some source files of the Python that runs this, none of them tiny."""
    library = Path(sysconfig.get_paths()["stdlib"])
    modules = [path for path in sorted(library.glob("*.py")) if path.stat().st_size > 8000]
    if not modules:
        raise ExampleError(f"this Python has no sources of its library in {library}")
    return random.Random(seed).sample(modules, min(count, len(modules)))


class Passages(IterableDataset):
    """The files one after the other, each in passages of LENGTH bytes and the byte after it."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __iter__(self) -> Iterator[torch.Tensor]:
        for path in self.paths:
            text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
            yield from text.unfold(0, LENGTH + 1, LENGTH)


class ByteModel(nn.Module):
    """Predicts each next byte of a passage."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 64)
        self.memory = nn.GRU(64, width, batch_first=True)
        self.output = nn.Linear(width, 256)

    def forward(self, passages: torch.Tensor) -> torch.Tensor:
        """Logits of shape (batch, length, 256) for passages of shape (batch, length)."""
        states, _ = self.memory(self.embedding(passages))
        return self.output(states)


def train(paths: list[Path], recorder: Recorder, seed: int) -> None:
    """The training script: as anybody would write it, and one line more in one of the arms."""
    torch.manual_seed(seed)
    loader = DataLoader(Passages(paths), batch_size=BATCH, drop_last=True)
    model = ByteModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    recorder.start()
    if recorder.with_gpuutil:
        import gpuutil

        recorder.monitor = gpuutil.attach(model)

    while recorder.running:
        for passages in loader:
            logits = model(passages[:, :-1])
            loss = cross_entropy(logits.flatten(0, 1), passages[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorder.step(loss.item())
            if not recorder.running:
                break


def print_verdict(comparison: Comparison) -> None:
    """Puts the difference of the arms beside the difference of the two runs of one arm."""
    plain, fast = comparison.plain, comparison.gpuutil
    if fast is None:
        return
    ratio = fast.last_third_samples_per_second / plain.last_third_samples_per_second
    noise = max(plain.spread_ratio, fast.spread_ratio)
    say()
    if fast.kept_changes:
        say(
            "gpuutil kept a change here; the step is the network's own work, so look at its ledger."
        )
    else:
        say("Nothing was changed, and rightly so: the step is the network's own work.")
    say(
        f"The last thirds differ by {100 * (ratio - 1):+.1f} % between the arms, and by "
        f"{100 * noise:.1f} % between two runs of the same arm.",
        indent=2,
    )


def main() -> int:
    options = parser(__doc__, steps=600).parse_args()
    paths = library_modules(2 if options.quick else MODULES, options.seed)
    if options.arm:
        return run_arm(options, BATCH, lambda recorder: train(paths, recorder, options.seed))
    comparison = compare(options, __file__)
    print_table(comparison, "passage")
    if comparison.gpuutil is not None:
        print_acts(comparison.gpuutil)
    if not options.quick:
        print_verdict(comparison)
    print_remarks(comparison, options.quick)
    return 0


if __name__ == "__main__":
    run_main(__file__, main)
