"""Small training loops that tests share."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    """`length` items; item i is (8 floats made from i, i). Each takes `seconds` of sleep or of CPU."""

    def __init__(self, length: int = 64, seconds: float = 0.0, burn: bool = False, draws: bool = False):
        self.length, self.seconds, self.burn, self.draws = length, seconds, burn, draws

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int):
        if self.burn:
            end = time.thread_time() + self.seconds
            while time.thread_time() < end:
                pass
        elif self.seconds:
            time.sleep(self.seconds)
        value = torch.full((8,), float(index))
        if self.draws:
            value = value + torch.rand(8)
        return value, index


def small_model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def train(
    loader: DataLoader,
    epochs: int = 1,
    model: torch.nn.Module | None = None,
    each_step: Callable[[int], None] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> tuple[list[list[int]], list[float]]:
    """A plain loop. Returns the indices of every batch in order and every loss."""
    model = model or small_model()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-4)
    order, losses, step = [], [], 0
    for _ in range(epochs):
        for values, indices in loader:
            optimizer.zero_grad()
            loss = model(values).square().mean()
            loss.backward()
            optimizer.step()
            order.append(indices.tolist())
            losses.append(loss.item())
            step += 1
            if each_step is not None:
                each_step(step)
    return order, losses
