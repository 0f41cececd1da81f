"""Comparing batches to the last bit, for the tests of the short ways to make them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher


def stock_fetch(dataset: Any, indices: Any, collate: Any = default_collate) -> Any:
    """What a stock loader without workers gives for these indices."""
    return _MapDatasetFetcher(dataset, True, collate, False).fetch(indices)


def assert_same(expected: Any, got: Any) -> None:
    """Same containers, and tensors that nothing can tell apart but their address."""
    assert type(got) is type(expected)
    if isinstance(expected, torch.Tensor):
        for name in ("dtype", "shape", "device", "layout", "requires_grad", "is_leaf"):
            assert getattr(got, name) == getattr(expected, name), name
        assert got.stride() == expected.stride()
        assert (got._base is None) == (expected._base is None)
        assert got.storage_offset() == expected.storage_offset()
        assert got.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
        assert got.untyped_storage().resizable() == expected.untyped_storage().resizable()
        assert got.data_ptr() % 64 == expected.data_ptr() % 64
        assert _bytes(got) == _bytes(expected)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        for key in expected:
            assert_same(expected[key], got[key])
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(expected, got, strict=True):
            assert_same(one, other)
    else:
        assert got == expected


def outcome(make: Any, *arguments: Any) -> Any:
    """The batch, or the type and the text of the exception."""
    try:
        return make(*arguments)
    except Exception as error:
        return type(error), str(error), type(error.__context__)


def assert_same_outcome(expected: Any, got: Any) -> None:
    if isinstance(expected, tuple) and isinstance(expected[0], type):
        assert got == expected
    else:
        assert_same(expected, got)


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
