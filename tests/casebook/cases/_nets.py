"""Small networks that several training scripts of this folder use."""

from __future__ import annotations

from torch import nn


def convnet(classes: int, channels: int = 16, inputs: int = 3) -> nn.Module:
    """Three convolutions for pictures of any size, shape (batch, inputs, height, width)."""
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * channels, 4 * channels, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * channels, classes),
    )


def wavenet(classes: int, channels: int = 1, width: int = 16) -> nn.Module:
    """Two convolutions for signals, shape (batch, channels, length)."""
    return nn.Sequential(
        nn.Conv1d(channels, width, 9, stride=4),
        nn.ReLU(),
        nn.Conv1d(width, 2 * width, 9, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


def perceptron(*widths: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
