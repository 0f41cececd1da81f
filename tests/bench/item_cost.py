"""What an item of input costs, with and without gpuutil's short ways.

    python tests/bench/item_cost.py [--quick] [--only NAME]

Parts, each with keys of its own in the result:

`batch_fetch`: a whole pass over a TensorDataset of 20,000 rows of 32 numbers, 256 a batch, stock and with
`loader_batch_fetch` on, in turns in one process. `batch_fetch_speedup`: the median of the ratios of
neighbours, with a 95 % interval; has to be at least 10. `batch_fetch_aa`: stock against stock.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from _measure import bootstrap_median, finish, median, say
from torch.utils.data import DataLoader, TensorDataset

from gpuutil.hooks.dataloader.batch_fetch import BY_ROWS, BatchFetch
from gpuutil.hooks.dataloader.fetch_cost import CostWatch

ROWS, WIDTH, BATCH = 20_000, 32, 256


def batch_fetch(quick: bool) -> dict[str, Any]:
    """A pass with one indexing a batch against a stock pass."""
    loader = DataLoader(TensorDataset(torch.rand(ROWS, WIDTH)), BATCH, shuffle=True)
    handle = BatchFetch()
    iterator = iter(loader)
    handle.bind(iterator)
    handle.request(BY_ROWS)
    for _ in range(CostWatch.BATCHES):  # the first batches are compared with torch's own
        next(iterator)
    if not handle.settled:
        raise AssertionError(f"loader_batch_fetch did not come about: {handle.failure}")

    def seconds(bound: bool) -> float:
        begin = time.perf_counter()
        iterator = iter(loader)
        if bound:
            handle.bind(iterator)
        count = sum(1 for _ in iterator)
        taken = time.perf_counter() - begin
        if count != -(-ROWS // BATCH):
            raise AssertionError(f"{count} batches")
        return taken

    stock, again, short = [], [], []
    gc.disable()
    for index in range(5 if quick else 42):
        turn = seconds(False), seconds(True), seconds(False)
        if index >= 2:  # the first passes warm everything up
            stock.append(turn[0])
            short.append(turn[1])
            again.append(turn[2])
        gc.collect()
    gc.enable()
    low, mid, high = bootstrap_median([(a + b) / 2 / s for a, s, b in zip(stock, short, again, strict=True)])
    say(f"batch_fetch: {mid:.1f}x ({low:.1f}-{high:.1f}), {median(stock) * 1e3:.1f} ms a stock pass")
    return {
        "batch_fetch_speedup": round(mid, 2),
        "batch_fetch_speedup_low": round(low, 2),
        "batch_fetch_speedup_high": round(high, 2),
        "batch_fetch_aa": round(median([a / b for a, b in zip(stock, again, strict=True)]), 3),
        "batch_fetch_stock_ms": round(median(stock) * 1e3, 2),
        "batch_fetch_short_ms": round(median(short) * 1e3, 2),
        "batch_fetch_rounds": len(stock),
    }


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {"batch_fetch": batch_fetch}
"""name -> part(quick) -> its keys of the result."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for name, part in PARTS.items():
        if options.only in (None, name):
            result.update(part(options.quick))
    finish(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
