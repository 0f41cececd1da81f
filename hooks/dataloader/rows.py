"""One indexing a batch for tensor data sets: the batch that `default_collate` makes of the rows,
without the rows in between.

Only for `TensorDataset` and `Subset` of it, the exact classes, over plain CPU tensors whose rows
lie contiguous: rows of any other layout torch may stack into batches of yet other strides. Nothing
is kept between two batches, so a data set that is changed meanwhile is seen as it is.
"""

from __future__ import annotations

from array import array
from typing import Any

import torch
from torch.utils.data import Subset, TensorDataset

from .unusual import Unusual, refuse_modes

try:
    import numpy
except ImportError:  # torch works without it
    numpy = None  # type: ignore[assignment]

MOST_BYTES = 64 << 20
"""Of a batch: beyond it copying is what counts, and a second copy to compare with is no trifle."""
_SUBSET_ITEMS = getattr(Subset, "__getitems__", None)
_ROW = TensorDataset.__getitem__


def problem(dataset: Any) -> str | None:
    """Why one indexing cannot stand for the rows of this data set; None if it can."""
    try:
        _examine(_tensors(dataset))
    except Unusual as reason:
        return str(reason)
    except Exception as error:
        return f"an error of gpuutil's: {error!r}"
    return None


def fetch(dataset: Any, indices: Any, plain: bool = False) -> list[torch.Tensor]:
    """The collated batch, bit for bit.

    Args:
        dataset: as `problem` accepts it.
        indices: a list of Python numbers.
        plain: that they are is known.

    Raises:
        Unusual: torch is to do it. Negative indices and those out of range raise other errors.
    """
    refuse_modes()
    if not plain:
        _only_numbers(indices)
    while type(dataset) is Subset:
        indices = _through(dataset.indices, indices)
        dataset = dataset.dataset
    tensors = _tensors(dataset)
    if _examine(tensors) * len(indices) > MOST_BYTES:
        raise Unusual("a batch is so large that copying it is all that counts")
    # Takes a fifth of what torch.tensor() does.
    places = torch.frombuffer(array("q", indices), dtype=torch.int64)
    return [tensor.index_select(0, places) for tensor in tensors]


def _subset_patched() -> bool:
    return getattr(Subset, "__getitems__", None) is not _SUBSET_ITEMS


def _only_numbers(indices: Any) -> None:
    # A bool is a number to isinstance() and a mask to a tensor.
    if type(indices) is not list or set(map(type, indices)) != {int}:
        raise Unusual("the sampler's batches are not lists of Python numbers")


def _through(held: Any, indices: list[int]) -> list[int]:
    """`[held[i] for i in indices]` for the `indices` of a Subset, as Python numbers."""
    if type(held) in (list, tuple, range):
        held = [held[i] for i in indices]
    elif type(held) is torch.Tensor:
        if held.dim() != 1 or held.dtype != torch.int64 or held.device.type != "cpu":
            raise Unusual("the indices of the Subset are an unusual tensor")
        held = held[indices].tolist()
    elif numpy is not None and type(held) is numpy.ndarray:
        if held.ndim != 1 or held.dtype != numpy.int64:
            raise Unusual("the indices of the Subset are an unusual array")
        held = held[indices].tolist()
    else:
        raise Unusual(f"the indices of the Subset are a {type(held).__name__}")
    _only_numbers(held)
    return held


def _tensors(dataset: Any) -> tuple[torch.Tensor, ...]:
    while type(dataset) is Subset:
        if "__getitems__" in vars(dataset) or _subset_patched():
            raise Unusual("the Subset fetches whole batches in a way of its own")
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset:
        raise Unusual(f"the data set is a {type(dataset).__name__}, not a TensorDataset")
    if getattr(dataset, "__getitems__", None) is not None:
        raise Unusual("the data set fetches whole batches by itself")
    if TensorDataset.__getitem__ is not _ROW:
        raise Unusual("TensorDataset was patched by somebody else")
    tensors = dataset.tensors
    if type(tensors) is not tuple or not tensors:
        raise Unusual("the data set holds no tuple of tensors")
    return tensors


def _examine(tensors: tuple[Any, ...]) -> int:
    """Bytes of a row of all, if one indexing each can stand for their rows."""
    row_bytes = 0
    for tensor in tensors:
        if type(tensor) is not torch.Tensor:
            raise Unusual(f"the data set holds a {type(tensor).__name__}, not a plain tensor")
        if not tensor.is_cpu:
            raise Unusual(f"the tensors are on the device {tensor.device}")
        if tensor.requires_grad:
            raise Unusual("the tensors require gradients")
        if (
            tensor.layout is not torch.strided
            or tensor.is_quantized
            or tensor.is_nested
            or tensor.is_conj()
            or tensor.is_neg()
            or tensor.is_inference()
            or any(getattr(tensor, "names", ()))
        ):
            raise Unusual("the tensors are of an unusual kind")
        if not tensor.numel() or not _rows_contiguous(tensor.shape, tensor.stride()):
            raise Unusual("the rows of the tensors do not lie contiguous")
        row_bytes += tensor.nbytes // tensor.shape[0]
    return row_bytes


def _rows_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Also in dimensions of one, whose stride `is_contiguous()` ignores and a batch may keep."""
    expected = 1
    for axis in range(len(shape) - 1, 0, -1):
        if strides[axis] != expected:
            return False
        expected *= shape[axis]
    return True
