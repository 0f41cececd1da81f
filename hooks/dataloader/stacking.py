"""Stack-first collate: what `default_collate` gives, with one copy a field where the samples hold
small arrays of one shape, instead of a tensor for each of them first.

Plain containers are taken apart as torch does it; numbers, strings and tensors go to
`default_collate`. No code of the script's own is run. The batch is written into a tensor that torch allocated: it has torch's
alignment, on which sums may depend, and may be resized, which memory of numpy's may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import collate as stock

from .unusual import Unusual, refuse_modes

try:
    import numpy
except ImportError:  # torch works without it, and then there are no arrays
    numpy = None  # type: ignore[assignment]

MOST_ARRAY_BYTES = 16 << 10
"""Beyond it the copy is what counts, and torch copies with several threads."""
_KINDS = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
_TORCH = {} if numpy is None else {numpy.dtype(k): getattr(torch, k) for k in _KINDS}
_LEAVES = (torch.Tensor, float, int, bool, str, bytes)
_STOCK_MAP = dict(getattr(stock, "default_collate_fn_map", {}))


def collate(samples: Any) -> Any:
    """What `default_collate(samples)` gives.

    Raises:
        Unusual: there is nothing to gain, or it is not clearly the same; torch is to do it.
    """
    refuse_modes()
    if numpy is None or getattr(stock, "default_collate_fn_map", None) != _STOCK_MAP:
        raise Unusual("default_collate was extended by the script")
    if type(samples) is not list or not samples:
        raise Unusual("the samples of a batch are no list")
    stacked: list[bool] = []
    result = _collate(samples, stacked)
    if not stacked:
        raise Unusual("the samples hold no small arrays of one shape")
    return result


def _collate(values: Sequence[Any], stacked: list[bool]) -> Any:
    first = values[0]
    kind = type(first)
    if kind is numpy.ndarray:
        result = _stack(values)
        if result is not None:
            stacked.append(True)
            return result
    elif kind is dict:
        if all(type(value) is dict for value in values):
            return {key: _collate([value[key] for value in values], stacked) for key in first}
    elif kind is tuple or kind is list:
        if all(type(value) is kind and len(value) == len(first) for value in values):
            return [_collate(field, stacked) for field in zip(*values, strict=True)]
    elif kind.__bases__ == (tuple,) and hasattr(kind, "_fields"):  # a plain namedtuple
        if all(type(value) is kind for value in values):
            return kind(*(_collate(field, stacked) for field in zip(*values, strict=True)))
    if kind is not numpy.ndarray and (not _is_leaf(kind) or set(map(type, values)) != {kind}):
        raise Unusual(f"the samples hold a {kind.__name__}, or not all the same")
    return default_collate(values)


def _is_leaf(kind: type) -> bool:
    return kind in _LEAVES or (issubclass(kind, numpy.generic) and kind.__module__ == "numpy")


def _stack(arrays: Sequence[Any]) -> torch.Tensor | None:
    first = arrays[0]
    dtype, shape, strides = first.dtype, first.shape, first.strides
    if dtype not in _TORCH or not shape or not 0 < first.nbytes <= MOST_ARRAY_BYTES:
        return None
    if strides != _strides(shape, first.itemsize):
        return None
    for array in arrays:
        if (
            type(array) is not numpy.ndarray
            or array.dtype != dtype
            or array.shape != shape
            or array.strides != strides
        ):
            return None
    batch = torch.empty((len(arrays), *shape), dtype=_TORCH[dtype], device="cpu")
    place = _Memory(batch, dtype, (len(arrays) * shape[0], *shape[1:]))
    numpy.concatenate(arrays, out=numpy.asarray(place))
    return batch


def _strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Of an array in C order, dimensions of one included: they too decide over torch's layout."""
    strides = []
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class _Memory:
    """The memory of a tensor for numpy. `Tensor.numpy()` would make its storage fixed in size."""

    def __init__(self, tensor: torch.Tensor, dtype: Any, shape: tuple[int, ...]) -> None:
        self._tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (tensor.data_ptr(), False),
        }
