#!/usr/bin/env python3
"""Trains on records from an object store over HTTP, without and with `gpuutil.attach(model)`.

The loader fetches one record a request in the training process, so nearly all of each step is
waiting for answers, and many workers can wait at once: more of them than CPUs pay. The store is a
server of this example, on the loopback, over real sockets; its latency and its rate limit are made
in the server.
"""

from __future__ import annotations

import http.client
import io
from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from _arms import Arm, Comparison, compare, parser
from _entry import run_main
from _machine import usable_cpus
from _object_server import serving
from _photo_files import PhotoSet, default_cache, photos_with_news
from _recorder import Recorder, run_arm
from _summary import print_acts, print_reached, print_remarks, print_table, say
from _vision import augment, small_convnet

BATCH = 16
PIXELS = 64
LATENCY_SECONDS = 0.007
RATE = 500.0
FULL = PhotoSet(width=160, height=120)
QUICK = PhotoSet(count=48, width=160, height=120)


class Records(Dataset):
    """Small JPEG records behind a URL: one connection and one request each."""

    def __init__(self, port: int, labels: list[int]) -> None:
        self.port = port
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", f"/{index}")
            record = connection.getresponse().read()
        finally:
            connection.close()
        with Image.open(io.BytesIO(record)) as image:
            return augment(image.convert("RGB"), PIXELS), self.labels[index]


def train(port: int, labels: list[int], recorder: Recorder, seed: int) -> None:
    """The training script: as anybody would write it, and one line more in one of the arms."""
    torch.manual_seed(seed)
    dataset = Records(port, labels)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    model = small_convnet(classes=1 + max(labels))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def learn(images: torch.Tensor, labels: torch.Tensor) -> float:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    recorder.start()
    if recorder.with_gpuutil:
        import gpuutil

        recorder.monitor = gpuutil.attach(model)

    while recorder.running:
        for images, classes in loader:
            recorder.step(learn(images, classes))
            if not recorder.running:
                break

    if not recorder.with_gpuutil:
        recorder.price(dataset, lambda: learn(images, classes))


def print_ceiling(comparison: Comparison) -> float:
    """Prints the best ratio that waiting side by side can give, and what was reached.

    A step takes at least what the store's rate limit asks for its records, and the CPU time of
    client, server and trainer shared out over the CPUs: the server runs on this machine too.
    """
    plain, cpus = comparison.plain, usable_cpus()
    threaded = plain.price("trainer_seconds")
    single = plain.price("trainer_one_thread_seconds")
    trainer = min(threaded, single)
    client = BATCH * plain.price("item_cpu_seconds")
    server = _server_cpu_seconds(plain) or 0.0
    alone = BATCH * plain.price("item_seconds") + (trainer if comparison.crowded else threaded)
    store = BATCH / RATE
    work = client + BATCH * server + single
    floor = max(trainer, store, work / cpus)
    ceiling = max(1.0, alone / floor)
    say()
    say("What the store and this machine allow")
    say(
        f"A batch waits {BATCH} times for {plain.price('item_seconds') * 1e3:.1f} ms, of which "
        f"{client / BATCH * 1e3:.1f} ms are CPU time, and trains for {threaded * 1e3:.0f} ms: "
        f"{alone * 1e3:.0f} ms one after the other.",
        indent=2,
    )
    say(
        f"The store hands out {RATE:.0f} records a second: {store * 1e3:.0f} ms a batch at least. "
        f"Client, server{'' if server else ' (not measured)'} and training cost "
        f"{work * 1e3:.0f} ms of CPU time: {work / cpus * 1e3:.0f} ms on {cpus:g} CPUs. So a step "
        f"takes {floor * 1e3:.0f} ms at least: at most {ceiling:.2f}x.",
        indent=2,
    )
    print_reached(comparison)
    return ceiling


def _server_cpu_seconds(plain: Arm) -> float | None:
    """CPU seconds of the server a record; None if not measured."""
    used = [half.helper_cpu_seconds for half in plain.halves]
    if None in used:
        return None
    # The records that were fetched to price one were served as well.
    return sum(used) / sum(half.samples + half.result["price"]["items"] for half in plain.halves)


def main() -> int:
    options_parser = parser(__doc__, steps=150)
    options_parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the files (%(default)s)"
    )
    options_parser.add_argument("--port", type=int, help="of a server that runs already (--arm)")
    options = options_parser.parse_args()
    if options.arm and options.port is None:
        options_parser.error("--arm needs the --port of a running _object_server.py")
    photos = photos_with_news(options.cache, QUICK if options.quick else FULL)
    labels = [photo.label for photo in photos]
    if options.arm:
        return run_arm(
            options, BATCH, lambda recorder: train(options.port, labels, recorder, options.seed)
        )
    say(
        f"The store is a server of this example: {len(photos)} objects on 127.0.0.1, "
        f"{LATENCY_SECONDS * 1e3:g} ms to the first byte and {RATE:g} objects a second in all, "
        "both made in the server; one connection an object."
    )
    with serving(photos[0].path.parent, LATENCY_SECONDS, RATE) as store:
        arguments = ["--cache", str(options.cache), "--port", str(store.port)]
        comparison = compare(options, __file__, *arguments, helper=store.pid)
    print_table(comparison, "record")
    if comparison.gpuutil is not None:
        print_acts(comparison.gpuutil)
    ceiling = None if options.quick else print_ceiling(comparison)
    print_remarks(comparison, options.quick, ceiling)
    return 0


if __name__ == "__main__":
    run_main(__file__, main)
