"""Trainings with nothing to fix must be left alone: same speed, no change kept, no warning.

    python tests/bench/healthy.py [--quick]

Compute-bound loops (a fed loader, tensors in memory without a loader), `apply="auto"` against without and without
against without, interleaved blocks in one process, compared by their lower quartiles. Rounds go on until the interval
is narrower than 2 %, or 200 are done.
Keys: speed_ratio_low, speed_ratio_high (95 % of with/without step time), changes_kept, warnings; aa_ratio.
"""

from __future__ import annotations

import argparse
import logging
import random
import time

import torch
from _measure import bootstrap_quantile_ratio, finish, say
from torch.utils.data import DataLoader, TensorDataset

import gpuutil


class Counter(logging.Handler):
    """Counts warnings of the library."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def loops() -> dict[str, callable]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.rand(64 * 400, 256))

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def loader(steps: int) -> None:
        for index, (x,) in enumerate(DataLoader(data, 256, num_workers=0)):
            for _ in range(4):
                step(x)
            if index >= steps:
                break

    def no_loader(steps: int) -> None:
        x = torch.rand(256, 256)
        for _ in range(steps * 4):
            step(x)

    return {"fed_loader": loader, "no_loader": no_loader}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works")
    quick = parser.parse_args().quick
    counter = Counter()
    logging.getLogger("gpuutil").addHandler(counter)
    order, kept, results = random.Random(5), 0, {}
    for name, loop in loops().items():
        loop(60)
        blocks: dict[str, list[float]] = {"plain": [], "again": [], "gpuutil": []}
        for round_index in range(4 if quick else 200):
            for arm in order.sample(list(blocks), len(blocks)):
                monitor = gpuutil.attach(log_dir=False) if arm == "gpuutil" else None
                loop(30)  # the start-up phase, in which every second step is looked into, is over before the block
                begin = time.perf_counter()
                loop(60)
                blocks[arm].append(time.perf_counter() - begin)
                if monitor is not None:
                    kept += sum(row["outcome"] == "kept" for row in monitor.ledger)
                    monitor.detach()
            if round_index >= 29 and round_index % 10 == 9:
                low, mid, high = bootstrap_quantile_ratio(blocks["gpuutil"], blocks["plain"])
                say(f"{name}: {mid:.4f} ({low:.4f}-{high:.4f})")
                if high - low < 0.02:
                    break
        low, mid, high = bootstrap_quantile_ratio(blocks["gpuutil"], blocks["plain"])
        _, control, _ = bootstrap_quantile_ratio(blocks["again"], blocks["plain"])
        results[name] = {
            "ratio": round(mid, 4), "low": round(low, 4), "high": round(high, 4),
            "rounds": len(blocks["plain"]), "aa_ratio": round(control, 4),
        }  # fmt: skip
    finish(
        {
            "speed_ratio_low": min(r["low"] for r in results.values()),
            "speed_ratio_high": max(r["high"] for r in results.values()),
            "changes_kept": kept,
            "warnings": len(counter.lines),
            "loops": results,
        }
    )


if __name__ == "__main__":
    main()
