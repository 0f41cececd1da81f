"""What the always-on path costs: the real `__next__` and `optimizer.step` from Python, and the C++ part alone.

    python tests/bench/hot_path.py [--quick]

Thread CPU time, blocks of attached and plain steps interleaved in one process; `aa_us` is plain against plain. The
loader hands out a ready tensor and the optimizer has nothing to do, so that the difference is not drowned.
Keys: python_us_per_step, native_us_per_step, aa_us (microseconds, medians over rounds of the block minimum).
"""

from __future__ import annotations

import argparse
import time

import torch
from _measure import finish, median, quantile, say
from torch.utils.data import DataLoader, Dataset

import gpuutil
from gpuutil import _core


class Ready(Dataset):
    """Hands out one tensor again and again, unbatched: the cheapest fetch there is."""

    def __init__(self, length: int) -> None:
        self.length, self.value = length, torch.ones(4)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.value


class Nothing(torch.optim.Optimizer):
    """An optimizer whose step does nothing but run torch's hooks."""

    def __init__(self) -> None:
        super().__init__([torch.nn.Parameter(torch.ones(1))], {})

    def step(self, closure=None):
        return None


def block(steps: int, optimizer: torch.optim.Optimizer) -> float:
    """Microseconds of thread CPU a step, of one pass."""
    iterator = iter(DataLoader(Ready(steps + 2), batch_size=None))
    next(iterator)
    optimizer.step()
    begin = time.thread_time_ns()
    for _ in range(steps):
        next(iterator)
        optimizer.step()
    return (time.thread_time_ns() - begin) / steps / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works")
    quick = parser.parse_args().quick
    rounds, steps = (6, 200) if quick else (60, 1000)
    optimizer = Nothing()
    plain, again, watched, native = [], [], [], []
    for index in range(rounds + 2):
        first = block(steps, optimizer)
        with gpuutil.attach(apply="observe", log_dir=False, config={"startup_steps": 0}):
            with_us = block(steps, optimizer)
            alone = _core.hot_path_cost_ns(2000, native_only=True) / 1e3
        second = block(steps, optimizer)
        if index >= 2:  # the first rounds warm everything up
            plain.append(first)
            again.append(second)
            watched.append(with_us)
            native.append(alone)
        if index % 10 == 0:
            say(f"round {index}: plain {first:.2f}, watched {with_us:.2f} us a step")
    difference = [w - (a + b) / 2 for w, a, b in zip(watched, plain, again)]
    finish(
        {
            "python_us_per_step": round(median(difference), 3),
            "python_us_per_step_p25": round(quantile(difference, 0.25), 3),
            "native_us_per_step": round(median(native), 4),
            "aa_us": round(median([b - a for a, b in zip(plain, again)]), 3),
            "plain_us_per_step": round(median(plain), 3),
            "rounds": rounds,
            "steps": steps,
        }
    )


if __name__ == "__main__":
    main()
