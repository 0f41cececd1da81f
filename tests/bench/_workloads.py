"""Input-starved trainings that the recovery benchmark tunes, each run in a process of its own.

    python tests/bench/_workloads.py NAME --out FILE [--workers N --prefetch N --threads N --persistent]
                                          [--seconds S] [--apply RUNG]

Writes one JSON object: start and end (ns) of every step and of every `next()`, samples a step, memory.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import threading
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 16


def _jpeg(size: int, seed: int) -> bytes:
    from PIL import Image

    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (size // 16, size // 16, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
    return out.getvalue()


class Decode(Dataset):
    """CPU-bound: decodes a JPEG (about 5 ms) and scales it down."""

    def __init__(self, length: int, size: int = 640) -> None:
        self.length, self.files = length, [_jpeg(size, seed) for seed in range(8)]

    def __len__(self) -> int:
        return self.length

    def decode(self, index: int) -> torch.Tensor:
        from PIL import Image

        image = Image.open(io.BytesIO(self.files[index % len(self.files)])).convert("RGB")
        pixels = np.asarray(image.resize((64, 64)), dtype=np.float32)
        return torch.from_numpy(pixels).permute(2, 0, 1) / 255

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.decode(index)


class Variance(Decode):
    """CPU-bound with a long tail: one item in twelve takes six times as long."""

    def __getitem__(self, index: int) -> torch.Tensor:
        if hash((index, 17)) % 12 == 0:
            for _ in range(5):
                self.decode(index)
        return self.decode(index)


class Store(Dataset):
    """Latency-bound: one request an item over a real socket to a loopback server that answers after 6 ms."""

    def __init__(self, length: int, port: int) -> None:
        self.length, self.port = length, port

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(index.to_bytes(8, "little"))
            data = b""
            while len(data) < 4096:
                data += connection.recv(4096)
        return torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(1, 32, 32).expand(3, 32, 32).clone()


class Mixed(Store):
    """Half latency, half CPU: a request, then a decode."""

    def __init__(self, length: int, port: int) -> None:
        super().__init__(length, port)
        self.pictures = Decode(length, size=480)

    def __getitem__(self, index: int) -> torch.Tensor:
        super().__getitem__(index)
        return self.pictures.decode(index)


def serve(delay_seconds: float = 0.006) -> int:
    """A loopback object server in a child process; the latency is in here. Returns its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    port = listener.getsockname()[1]
    if os.fork():
        listener.close()
        return port
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with the trainer
    body = np.ones(1024, dtype=np.float32).tobytes()

    def answer(connection: socket.socket) -> None:
        with connection:
            if connection.recv(8):
                time.sleep(delay_seconds)
                connection.sendall(body)

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


WORKLOADS = {
    "cpu_decode": lambda port: (Decode(100_000), None),
    "latency": lambda port: (Store(100_000, port), None),
    "variance": lambda port: (Variance(100_000), None),
    "short_epochs": lambda port: (Decode(100_000), 12),
    "mixed": lambda port: (Mixed(100_000, port), None),
}
"""name -> (dataset, batches in an epoch or None for one long epoch)."""


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=2), torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def run(options: argparse.Namespace) -> dict:
    """Trains for a number of seconds and returns the record."""
    port = serve()
    torch.manual_seed(0)
    dataset, batches = WORKLOADS[options.workload](port)
    if batches:
        dataset.length = batches * BATCH
    if options.threads:
        torch.set_num_threads(options.threads)
    arguments = {}
    if options.workers:
        arguments = {"prefetch_factor": options.prefetch, "persistent_workers": options.persistent}
    loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=options.workers, **arguments)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    monitor = None
    if options.apply:
        import gpuutil

        monitor = gpuutil.attach(model, apply=options.apply, log_dir=False)
    steps, fetches = [], []
    begin = time.monotonic_ns()
    end = begin + int(options.seconds * 1e9)
    while time.monotonic_ns() < end:
        iterator = iter(loader)
        while True:
            before = time.monotonic_ns()
            try:
                batch = next(iterator)
            except StopIteration:
                break
            fetches.append((before - begin, time.monotonic_ns() - before))
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            steps.append(time.monotonic_ns() - begin)
            if steps[-1] > end - begin:
                break
        del iterator
    with open("/proc/self/statm") as file:
        rss = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    result = {"steps_ns": steps, "fetches_ns": fetches, "samples": BATCH, "rss_bytes": rss}
    if monitor is not None:
        result["ledger"] = monitor.ledger
        monitor.detach()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--out", required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--apply", default="")
    options = parser.parse_args()
    record = run(options)
    with open(options.out, "w") as file:
        json.dump(record, file)


if __name__ == "__main__":
    main()
