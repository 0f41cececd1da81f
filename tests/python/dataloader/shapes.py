"""Data sets and samplers that the loader tests share. Importable by a worker process."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from gpuutil.hooks.dataloader.live import LiveLoader


class Backwards(Sampler):
    """n - 1 down to 0, lazily."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        yield from range(self.length - 1, -1, -1)


class Ragged(Sampler):
    """Batch sampler with batches of different sizes that draws from the global generator in
    `__iter__`, at once."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed = length, seed

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        order, out = torch.randperm(self.length).tolist(), []
        sizes = random.Random(self.seed)
        while order:
            size = sizes.randint(1, 4)
            out.append(order[:size])
            order = order[size:]
        return iter(out)


_inited = False


class Items(Dataset):
    """Item i is (i, i * i, …). Some items fail, some are slow, all may be large."""

    def __init__(
        self, length: int, bad: set[int], slow: set[int], base: float, need_init: bool, large: bool
    ) -> None:
        self.length, self.bad, self.slow, self.base = length, bad, slow, base
        self.need_init, self.large = need_init, large

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.need_init and get_worker_info() is not None and not _inited:
            raise RuntimeError("worker_init_fn did not run")
        time.sleep(0.03 if index in self.slow else self.base)
        if index in self.bad:
            raise ValueError(f"item {index}")
        if self.large:
            return torch.full((40_000,), index)
        return torch.tensor([index, index * index])


def init(worker_id: int) -> None:
    global _inited
    _inited = True


def collate(items: Any) -> dict[str, Any]:
    """Tensors travel by shared memory, the list through the line itself."""
    return {"x": torch.stack(items).flatten().tolist(), "t": torch.stack(items)}


class Squares(Dataset):
    def __init__(self, length: int = 200, seconds: float = 0.001) -> None:
        self.length, self.seconds = length, seconds

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.tensor([index, index * index])


class WithPid(Squares):
    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.tensor([index, os.getpid()])


def until_effective(live: LiveLoader, iterator: Any, limit: int = 150) -> list[Any]:
    """Takes batches until the request has come about."""
    got = []
    for _ in range(limit):
        got.append(next(iterator))
        if live.state.effective:
            return got
        time.sleep(0.01)
    raise AssertionError(f"never effective: {live.state}")


def firsts(batches: Any) -> list[int]:
    return [int(i) for b in batches for i in b.reshape(-1, b.shape[-1])[:, 0]]


def bound(live: LiveLoader, loader: DataLoader) -> Any:
    iterator = iter(loader)
    live.bind(iterator)
    return iterator


class Noisy(Dataset):
    """Item i is (i, what five generators and the worker's record say there, the worker's process)."""

    def __init__(self, length: int = 24, seconds: float = 0.0) -> None:
        self.length, self.seconds, self.offset = length, seconds, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if self.seconds:
            time.sleep(self.seconds)
        info = get_worker_info()
        drawn = (
            torch.rand(()).item(),
            random.random(),
            float(numpy.random.rand()),
            torch.initial_seed() % 1_000_003,
            info.seed % 1_000_003 if info is not None else 0,
        )
        return torch.tensor([index + self.offset, *drawn, os.getpid()], dtype=torch.float64)


class Eager(Sampler):
    """Draws its order at `iter()`, from every generator that it can reach."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.own = length, random.Random(seed)
        self.calls = 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        self.calls += 1
        order = torch.randperm(self.length).tolist()
        random.shuffle(order)
        self.own.shuffle(order)
        return iter(order)
