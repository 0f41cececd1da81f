"""Data sets of the scripts of this folder, made once from what installed packages bring."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import random
import subprocess
import sys
import sysconfig
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

_PHOTOGRAPHS = {
    "sklearn": ("datasets/images/china.jpg", "datasets/images/flower.jpg"),
    "skimage": (
        "data/astronaut.png",
        "data/chelsea.png",
        "data/coffee.png",
        "data/hubble_deep_field.jpg",
        "data/motorcycle_left.png",
        "data/retina.jpg",
        "data/rocket.jpg",
    ),
}


def make(path: Path, write: Callable[[Path], object]) -> Path:
    """Writes a file where it is not there yet: whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{os.getpid()}-{path.name}")
        write(partial)
        os.replace(partial, path)
    return path


@functools.cache
def originals() -> list[Image.Image]:
    """The sample photographs of scikit-learn and scikit-image."""
    found = []
    for package, names in _PHOTOGRAPHS.items():
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            found += [Path(folder) / name for name in names if (Path(folder) / name).is_file()]
    if not found:
        raise SystemExit("No sample photographs: pip install scikit-image scikit-learn")
    return [Image.open(path).convert("RGB") for path in found]


def crop(index: int, size: tuple[int, int]) -> Image.Image:
    """Another part of one of the photographs for each number."""
    chance, image = random.Random(index), originals()[index % len(originals())]
    scale = min(image.width / size[0], image.height / size[1]) * chance.uniform(0.5, 1.0)
    width, height = size[0] * scale, size[1] * scale
    left, top = chance.uniform(0, image.width - width), chance.uniform(0, image.height - height)
    box = (left, top, min(left + width, image.width), min(top + height, image.height))
    return image.resize(size, Image.Resampling.BILINEAR, box=box)


def photographs(folder: Path, count: int, size: tuple[int, int], first: int = 0) -> list[Path]:
    """JPEG files; the photograph that file i shows is i % 9."""
    place = folder / f"photos-{size[0]}x{size[1]}"
    return [
        make(place / f"{i:05d}.jpg", lambda path, i=i: crop(i, size).save(path, "JPEG", quality=90))
        for i in range(first, first + count)
    ]


def pixels(image: Image.Image, side: int) -> np.ndarray:
    """Float array of shape (3, side, side), 0 to 1."""
    small = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255


def tones(folder: Path, count: int, seconds: float = 1.0) -> list[Path]:
    """WAV files, 16 kHz: a noisy tone each, of pitch i % 8."""

    def write(path: Path, index: int) -> None:
        noise = np.random.default_rng(index)
        time = np.arange(int(16000 * seconds)) / 16000
        sound = np.sin(2 * math.pi * 220 * 2 ** (index % 8 / 4) * time + noise.uniform(0, 6))
        sound += noise.normal(0, 0.3, time.size)
        with open(path, "wb") as target, wave.open(target, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes((sound * 8000).astype("<i2").tobytes())

    place = folder / f"tones-{seconds:g}"
    return [make(place / f"{i:05d}.wav", lambda path, i=i: write(path, i)) for i in range(count)]


def sound(path: Path) -> np.ndarray:
    """Samples of a WAV file, -1 to 1."""
    with wave.open(str(path), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


@functools.cache
def library_text() -> str:
    """Sources of Python's own library, one after the other."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return "\n".join(path.read_text(errors="replace") for path in paths)


def passages(count: int, length: int, seed: int = 0) -> list[str]:
    """Pieces of `library_text` of `length` characters."""
    text, chance = library_text(), random.Random(seed)
    starts = [chance.randrange(len(text) - length) for _ in range(count)]
    return [text[start : start + length] for start in starts]


@contextlib.contextmanager
def photo_server(paths: list[Path]) -> Iterator[str]:
    """A small object store on the loopback that has these files: its address, for GET address/N."""
    command = [sys.executable, str(Path(__file__).with_name("_photo_server.py"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            server.stdin.write("\n".join(map(str, paths)) + "\n\n")
            server.stdin.flush()
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()
