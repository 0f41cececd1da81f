"""The transforms and the network that the image examples share: plain Pillow and PyTorch."""

from __future__ import annotations

import math

import numpy
import torch
from PIL import Image
from torch import nn

# Per-channel mean and deviation of natural images, as customary.
_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def augment(image: Image.Image, pixels: int) -> torch.Tensor:
    """Random resized crop, random flip, normalise.

    Args:
        image: any size, RGB.
        pixels: side of the square that comes out.

    Returns:
        Float tensor of shape (3, pixels, pixels).
    """
    area = image.width * image.height * torch.empty(1).uniform_(0.3, 1.0).item()
    aspect = math.exp(torch.empty(1).uniform_(math.log(3 / 4), math.log(4 / 3)).item())
    width = min(image.width, math.sqrt(area * aspect))
    height = min(image.height, math.sqrt(area / aspect))
    left = torch.rand(1).item() * (image.width - width)
    top = torch.rand(1).item() * (image.height - height)
    box = (left, top, min(left + width, image.width), min(top + height, image.height))
    small = image.resize((pixels, pixels), Image.Resampling.BILINEAR, box=box)
    if torch.rand(1).item() < 0.5:
        small = small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    tensor = torch.from_numpy(numpy.array(small)).permute(2, 0, 1).float() / 255
    return (tensor - _MEAN) / _DEVIATION


def small_convnet(classes: int, channels: int = 16) -> nn.Module:
    """Three convolutions: little work beside the decoding of its input."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * channels, 4 * channels, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * channels, classes),
    )
