"""Data sets and samplers that the loader tests share. Importable by a worker process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Sampler


class Backwards(Sampler):
    """n - 1 down to 0, lazily."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        yield from range(self.length - 1, -1, -1)


class Ragged(Sampler):
    """Batch sampler with batches of different sizes that draws from the global generator in `__iter__`, at once."""

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
