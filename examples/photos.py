#!/usr/bin/env python3
"""Trains a small network on JPEG photographs, without and with `gpuutil.attach(model)`.

The loader decodes in the training process (num_workers=0, the default of PyTorch), so most of each
step goes to decoding. Both arms run in processes of their own, by turns, and the summary puts the
gain beside the most that the CPUs of this machine allow.
"""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from _arms import Comparison, compare, parser
from _entry import run_main
from _machine import usable_cpus
from _photo_files import Photo, PhotoSet, default_cache, photos_with_news
from _recorder import Recorder, run_arm
from _summary import print_acts, print_reached, print_remarks, print_table, say
from _vision import augment, small_convnet

BATCH = 16
PIXELS = 96
FULL = PhotoSet()
QUICK = PhotoSet(count=48, width=320, height=240)


class Photos(Dataset):
    """JPEG files, decoded and augmented one by one."""

    def __init__(self, photos: list[Photo]) -> None:
        self.photos = photos
        self.classes = 1 + max(photo.label for photo in photos)

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        photo = self.photos[index]
        with Image.open(photo.path) as image:
            return augment(image.convert("RGB"), PIXELS), photo.label


def train(photos: list[Photo], recorder: Recorder, seed: int) -> None:
    """The training script: as anybody would write it, and one line more in one of the arms."""
    torch.manual_seed(seed)
    dataset = Photos(photos)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    model = small_convnet(dataset.classes)
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
        for images, labels in loader:
            recorder.step(learn(images, labels))
            if not recorder.running:
                break

    if not recorder.with_gpuutil:
        recorder.price(dataset, lambda: learn(images, labels))


def print_ceiling(comparison: Comparison) -> float:
    """Prints the best ratio that overlap can give on these CPUs, and what was reached.

    A step takes max(trainer, (decode + trainer) / CPUs) at least, in CPU time: workers move the
    decoding to other CPUs, they do not make it cheaper.
    """
    plain, cpus = comparison.plain, usable_cpus()
    decode = BATCH * plain.price("item_cpu_seconds")
    threaded = plain.price("trainer_seconds")
    single = plain.price("trainer_one_thread_seconds")
    trainer = min(threaded, single)
    # Neighbours hold up the threads that wait for each other: that time is not ours to win.
    alone = decode + (trainer if comparison.crowded else threaded)
    floor = max(trainer, (decode + single) / cpus)
    ceiling = max(1.0, alone / floor)
    say()
    say(f"What {cpus:g} CPU{'s' * (cpus != 1)} allow{'s' * (cpus == 1)}")
    say(
        f"A batch costs {decode * 1e3:.0f} ms of decoding and {threaded * 1e3:.0f} ms of training "
        f"({single * 1e3:.0f} ms on one thread), one after the other.",
        indent=2,
    )
    say(
        f"A step takes max({trainer * 1e3:.0f}, ({decode * 1e3:.0f} + {single * 1e3:.0f}) / "
        f"{cpus:g}) = {floor * 1e3:.0f} ms at least: at most {ceiling:.2f}x. With CPUs to spare "
        f"the ceiling is the training alone, {alone / trainer:.1f}x.",
        indent=2,
    )
    print_reached(comparison)
    if cpus <= 1:
        say("One CPU has nothing to overlap with: no change of the loader can help here.", 2)
    return ceiling


def main() -> int:
    options_parser = parser(__doc__, steps=180)
    options_parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of the files (%(default)s)"
    )
    options = options_parser.parse_args()
    photos = photos_with_news(options.cache, QUICK if options.quick else FULL)
    if options.arm:
        return run_arm(options, BATCH, lambda recorder: train(photos, recorder, options.seed))
    comparison = compare(options, __file__, "--cache", str(options.cache))
    print_table(comparison, "image")
    if comparison.gpuutil is not None:
        print_acts(comparison.gpuutil)
    ceiling = None if options.quick else print_ceiling(comparison)
    print_remarks(comparison, options.quick, ceiling)
    return 0


if __name__ == "__main__":
    run_main(__file__, main)
