"""Shared by the training scripts of this folder: their arguments, and the line they end with."""

from __future__ import annotations

import argparse
import time
import zlib
from pathlib import Path

import torch


def arguments(description: str, epochs: int, items: int) -> argparse.Namespace:
    """--epochs and --items with these defaults, --data and --seed. Seeds torch."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--items", type=int, default=items, help="samples in an epoch")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data set")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    return options


class Run:
    """Notes which samples were trained on, in which order, and how fast."""

    def __init__(self) -> None:
        self._times = [time.perf_counter()]
        self._samples = [0]
        self._order = 0
        self._loss = torch.zeros(())

    def step(self, inputs: torch.Tensor, loss: torch.Tensor) -> None:
        """After each step; the first dimension of `inputs` counts the samples."""
        values = inputs.detach().reshape(-1)
        # Some of each sample is enough to tell it from the others.
        stride = max(1, min(values.numel() // 512, values.numel() // len(inputs)))
        self._order = zlib.crc32(values[::stride].contiguous().numpy(), self._order)
        self._loss = loss.detach()
        self._samples.append(self._samples[-1] + len(inputs))
        self._times.append(time.perf_counter())

    def done(self, *models: torch.nn.Module) -> None:
        """Prints the last line. Without a step there is nothing to say."""
        if len(self._times) == 1:
            return
        parameters = 0
        for model in models:
            for value in model.state_dict().values():
                parameters = zlib.crc32(value.contiguous().numpy().tobytes(), parameters)
        seconds = self._times[-1] - self._times[0]
        first = (len(self._times) - 1) * 2 // 3
        late = self._samples[-1] - self._samples[first]
        rate = late / (self._times[-1] - self._times[first])
        print(
            f"done: {seconds:.2f} s, {self._samples[-1]} samples in {len(self._times) - 1} steps, "
            f"{self._samples[-1] / seconds:.2f} samples/s ({rate:.2f} in the last third), "
            f"loss {float(self._loss):.4f}, order {self._order:08x}, parameters {parameters:08x}",
            flush=True,
        )
