"""Record the step times that `trial_errors.py` uses as noise: `python record.py NAME [STEPS]`.

Three real training loops on the CPU, each with a different kind of noise. Nothing is slept and
nothing is drawn from a distribution: what is written is what the loop took on a machine that other
processes shared.
"""

from __future__ import annotations

import gc
import pathlib
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

_WARM_UP = 30


def _conv_net() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return model, torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))


def _autocorrelated(steps: int) -> list[float]:
    """A small convolutional net on one thread: neighbours slow whole runs of steps."""
    torch.set_num_threads(1)
    model, images, labels = _conv_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return _times(step, steps)


class _Rows(torch.utils.data.Dataset):
    """Rows of unequal cost: one in 509, or one batch in sixteen, is twenty times as dear."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> torch.Tensor:
        row = torch.linspace(0, 1, 4096)
        for _ in range(120 if index % 509 == 0 else 6):
            row = torch.sin(row)
        return row[:256]


def _spikes(steps: int) -> list[float]:
    """A loader with one worker and unequal rows; every 64th step collects garbage."""
    torch.set_num_threads(1)
    rows = torch.utils.data.DataLoader(_Rows(), batch_size=32, num_workers=1, shuffle=True)
    loader = iter(rows)
    layers = [nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    cycles: list[list[object]] = []

    def step() -> None:
        optimizer.zero_grad()
        model(next(loader)).square().mean().backward()
        optimizer.step()
        cycles.append([cycles])
        if len(cycles) % 64 == 0:
            gc.collect()

    return _times(step, steps)


def _drift(steps: int) -> list[float]:
    """A recurrent net whose sequences grow, and a metric over the whole history of losses."""
    torch.set_num_threads(1)
    model, head = nn.GRU(32, 64), nn.Linear(64, 32)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    tokens = torch.randn(96, 16, 32)
    losses: list[float] = []

    def step() -> None:
        length = 40 + len(losses) // 40
        optimizer.zero_grad()
        outputs, _ = model(tokens[:length])
        loss = (head(outputs[:-1]) - tokens[1:length]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        sum(value * 0.5 for value in losses)

    return _times(step, steps)


def _times(step: Callable[[], None], steps: int) -> list[float]:
    times = []
    for index in range(_WARM_UP + steps):
        begin = time.perf_counter_ns()
        step()
        if index >= _WARM_UP:
            times.append((time.perf_counter_ns() - begin) / 1e3)
    return times


_LOOPS = {"autocorrelated": _autocorrelated, "spikes": _spikes, "drift": _drift}


def main() -> None:
    """Write NAME.txt beside this file: what it is in a comment, then microseconds, one a line."""
    name = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    times = _LOOPS[name](steps)
    lines = [
        f"# {name}: {_LOOPS[name].__doc__}",
        f"# Wall time of {steps} consecutive training steps in microseconds, one a line, torch"
        f" {torch.__version__} on a CPU machine of two cores that other processes shared.",
        "# Recorded by record.py; the first 30 steps are left out.",
        *(f"{value:.0f}" for value in times),
    ]
    path = pathlib.Path(__file__).with_name(f"{name}.txt")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
