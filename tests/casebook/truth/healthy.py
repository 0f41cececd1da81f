"""Scripts with nothing to mend: no warning may come, and nothing may get slower."""

from __future__ import annotations

from .entry import Truth

HEALTHY = (
    Truth(
        "spirals",
        casebook="",
        why="steps of a fraction of a millisecond",
        quick=("--epochs", "2", "--items", "6400"),
    ),
    Truth("museum_photos", casebook="", why="a loader that keeps up with one worker"),
    Truth("aerial_photos", casebook="", why="more workers and depth than needed, and idle"),
    Truth(
        "portraits",
        casebook="T-10",
        why="pin_memory where there is nothing to copy to",
        refused=("loader_pin",),
    ),
    Truth("accumulated_digits", casebook="", why="four micro-batches a step"),
    Truth("cross_checks", casebook="", why="half of the time goes to evaluation, and is meant to"),
    Truth(
        "sentences_by_length",
        casebook="",
        why="batches of different shape and size",
        quick=("--epochs", "1", "--items", "20"),
    ),
    Truth(
        "digits_gan",
        casebook="",
        why="two networks and two optimizers in turn",
        quick=("--epochs", "2", "--items", "640"),
    ),
    Truth(
        "pole_balancing",
        casebook="",
        why="no loader at all: the data comes from acting",
        quick=("--epochs", "10", "--items", "64"),
    ),
    Truth(
        "text_lstm", casebook="", why="an LSTM", quick=("--epochs", "1", "--items", "160")
    ),
    Truth(
        "ad_embeddings",
        casebook="",
        why="tables of vectors, gathered row by row in one operator",
        quick=("--epochs", "1", "--items", "5120"),
    ),
    Truth(
        "bootstrap_forecast",
        casebook="",
        why="a sampler that draws with replacement",
        quick=("--epochs", "1", "--items", "1280"),
    ),
    Truth(
        "paired_views",
        casebook="",
        why="two loaders side by side",
        quick=("--epochs", "1", "--items", "640"),
    ),
    Truth(
        "text_stream",
        casebook="",
        why="an iterable data set that is cheap to read",
        quick=("--epochs", "1", "--items", "160"),
    ),
)
