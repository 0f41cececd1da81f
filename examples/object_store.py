#!/usr/bin/env python3
"""Trains on records from an object store over HTTP, without and with `gpuutil.attach(model)`.

The loader fetches one record a request in the training process, so nearly all of each step is
waiting for answers, and many workers can wait at once: more of them than CPUs pay. The store is a
server of this example, on the loopback, over real sockets; its latency and its rate limit are made
in the server.
"""

from __future__ import annotations

import argparse
import http.client
import io
import sys
from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from _arms import ArmFailed, Comparison, compare, parser
from _machine import usable_cpus
from _object_server import serving
from _photo_files import NoPhotographs, PhotoSet, default_cache, photos_with_news
from _recorder import Recorder, run_arm
from _summary import print_acts, print_remarks, print_table, say
from _vision import augment, small_convnet

BATCH = 16
PIXELS = 64
LATENCY_SECONDS = 0.008
RATE = 450.0
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
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

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
        recorder.price(dataset.__getitem__, lambda: learn(images, classes))


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
    # The prices are of `priced_items` more records than the arm trained on.
    served = sum(half.samples + half.result["price"]["items"] for half in plain.halves)
    helped = [half.helper_cpu_seconds or 0.0 for half in plain.halves]
    server = BATCH * sum(helped) / served
    alone = BATCH * plain.price("item_seconds") + (trainer if comparison.crowded else threaded)
    store = BATCH / RATE
    shared = (client + server + single) / cpus
    floor = max(trainer, store, shared)
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
        f"Client, server and training cost {(client + server + single) * 1e3:.0f} ms of CPU, on "
        f"{cpus:g} CPUs {shared * 1e3:.0f} ms. At most {ceiling:.2f}x.",
        indent=2,
    )
    return ceiling


def main() -> int:
    options_parser = parser(__doc__, steps=150)
    options_parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the files (%(default)s)"
    )
    options_parser.add_argument("--port", type=int, help="of a server that runs already (--arm)")
    options = options_parser.parse_args()
    if options.arm and options.port is None:
        options_parser.error("--arm needs the --port of a running _object_server.py")
    photo_set = QUICK if options.quick else FULL
    try:
        photos = photos_with_news(options.cache, photo_set)
        labels = [photo.label for photo in photos]
        if options.arm:
            return run_arm(
                options,
                BATCH,
                lambda recorder: train(options.port, labels, recorder, options.seed),
            )
        print(
            f"The store is a server of this example: {len(photos)} objects on 127.0.0.1, "
            f"{LATENCY_SECONDS * 1e3:g} ms to the first\nbyte and {RATE:.0f} objects a second in "
            "all, both made in the server; one connection an object."
        )
        with serving(photos[0].path.parent, LATENCY_SECONDS, RATE) as store:
            arguments = ["--cache", str(options.cache), "--port", str(store.port)]
            arguments += ["--quick"] if options.quick else []
            comparison = compare(options, __file__, *arguments, helper=store.pid)
    except (NoPhotographs, ArmFailed, OSError) as error:
        print(f"object_store.py: {error}", file=sys.stderr)
        return 1
    print_table(comparison, "record")
    if comparison.gpuutil is not None:
        print_acts(comparison.gpuutil)
    ceiling = None if options.quick else print_ceiling(comparison)
    print_remarks(comparison, options.quick, ceiling)
    return 0


if __name__ == "__main__":
    sys.exit(main())
