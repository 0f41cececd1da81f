"""Makes JPEG files from the sample photographs of scikit-learn and scikit-image, once.

Each file is a crop of another place and scale, half of them mirrored, all of it decided by the seed
and the file's number. Files and manifest are written atomically; a run that was killed, a missing
file or a damaged one is put right by the next run, which writes those files and no others.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import random
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from PIL import Image

from _entry import ExampleError

# The photographs that these packages install (the rest of their samples are drawings, textures,
# or fetched from a network). Most are smaller than the files made here and are enlarged.
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


@dataclass(frozen=True)
class PhotoSet:
    """What to make; part of the manifest, so that another choice is another set of files."""

    count: int = 600
    width: int = 1200
    height: int = 900
    quality: int = 90
    seed: int = 1

    @property
    def name(self) -> str:
        return f"photos-{self.count}-{self.width}x{self.height}-q{self.quality}-s{self.seed}"


@dataclass(frozen=True)
class Photo:
    """One file and which photograph it is a crop of."""

    path: Path
    label: int


def default_cache() -> Path:
    """The user's cache folder for these examples, by the XDG rules."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say to ignore a path that is not absolute.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "gpuutil" / "examples"


def sources() -> list[Path]:
    """The photographs that are installed here, in a fixed order."""
    found = []
    for package, names in _PHOTOGRAPHS.items():
        spec = importlib.util.find_spec(package)  # looks for it, does not import it
        for folder in (spec and spec.submodule_search_locations) or ():
            found += [Path(folder) / name for name in names if (Path(folder) / name).is_file()]
    return found


def prepare(cache: Path, photo_set: PhotoSet = PhotoSet()) -> tuple[list[Photo], int]:
    """Makes sure that all files of a set are there and whole.

    Args:
        cache: folder that holds the sets; made if missing.
        photo_set: what to make.

    Returns:
        The photographs, and how many of them had to be written.

    Raises:
        ExampleError: nothing to crop from is installed.
        OSError: the cache cannot be written.
    """
    originals = sources()
    if not originals:
        raise ExampleError(
            "The sample photographs are not here: pip install scikit-image scikit-learn"
        )
    folder = cache / photo_set.name
    folder.mkdir(parents=True, exist_ok=True)
    recipe = asdict(photo_set) | {"sources": [path.name for path in originals]}
    with _locked(folder):
        sums = _read_manifest(folder, recipe)
        missing = [
            index
            for index in range(photo_set.count)
            # No entry is -1, no file is None: never equal.
            if sums.get(_name(index), -1) != _checksum(folder / _name(index))
        ]
        if missing:
            for leftover in folder.glob("*.partial"):
                leftover.unlink()
            sums.update(_write_photos(folder, photo_set, originals, missing))
            manifest = json.dumps({"recipe": recipe, "crc32": sums}, indent=1)
            _write_atomically(folder / "manifest.json", manifest.encode())
    photos = [
        Photo(folder / _name(index), index % len(originals)) for index in range(photo_set.count)
    ]
    return photos, len(missing)


def photos_with_news(cache: Path, photo_set: PhotoSet) -> list[Photo]:
    """`prepare`, and a line on stdout where something had to be written.

    Raises:
        ExampleError: as `prepare`, or the cache cannot be written.
    """
    start = time.monotonic()
    try:
        photos, written = prepare(cache, photo_set)
    except OSError as error:
        raise ExampleError(f"no photographs here, choose another --cache: {error}") from error
    if written:
        size = sum(photo.path.stat().st_size for photo in photos) / 1e6
        print(
            f"Wrote {written} of {len(photos)} photographs ({photo_set.width}x{photo_set.height}, "
            f"{size:.0f} MB in all) in {time.monotonic() - start:.0f} s, once: "
            f"{cache / photo_set.name}",
            flush=True,
        )
    return photos


def _write_photos(
    folder: Path, photo_set: PhotoSet, originals: list[Path], indices: list[int]
) -> dict[str, int]:
    """Writes the files of these numbers and returns their checksums by name."""
    images = []
    for path in originals:
        with Image.open(path) as image:
            images.append(image.convert("RGB"))

    def write(index: int) -> tuple[str, int]:
        photo = _crop(images[index % len(images)], photo_set, index)
        path = folder / _name(index)
        partial = path.with_suffix(".partial")
        photo.save(partial, "JPEG", quality=photo_set.quality)
        os.replace(partial, path)
        return path.name, _checksum(path) or 0

    # Pillow gives up the GIL where the time goes, in resizing and in compressing.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return dict(threads.map(write, indices))


def _crop(image: Image.Image, photo_set: PhotoSet, index: int) -> Image.Image:
    """A crop of 60 to 100 % of what fits into the photograph, brought to the size of the set."""
    chance = random.Random(photo_set.seed * 1_000_003 + index)
    unit = min(image.width / photo_set.width, image.height / photo_set.height)
    scale = unit * chance.uniform(0.6, 1.0)
    width, height = photo_set.width * scale, photo_set.height * scale
    left = chance.uniform(0, image.width - width)
    top = chance.uniform(0, image.height - height)
    size = (photo_set.width, photo_set.height)
    # Rounding must not push the box over the edge by the last bit.
    box = (left, top, min(left + width, image.width), min(top + height, image.height))
    crop = image.resize(size, Image.Resampling.BICUBIC, box=box)
    if chance.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return crop


def _name(index: int) -> str:
    return f"{index:05d}.jpg"


def _checksum(path: Path) -> int | None:
    try:
        return zlib.crc32(path.read_bytes())
    except OSError:
        return None


def _read_manifest(folder: Path, recipe: dict[str, object]) -> dict[str, int]:
    """Checksums by file name; empty where there is no manifest, or one for other files."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        return dict(manifest["crc32"]) if manifest["recipe"] == recipe else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write_atomically(path: Path, data: bytes) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(data)
    os.replace(partial, path)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two runs at a time make the files once. The lock goes with the process that holds it."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
