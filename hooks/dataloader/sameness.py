"""Whether two batches are the same in every respect that a training can see."""

from __future__ import annotations

from typing import Any

import torch


def difference(expected: Any, got: Any) -> str | None:
    """What differs first, in words; None if nothing does. For what `default_collate` returns."""
    kind = type(expected)
    if type(got) is not kind:
        return f"a {type(got).__name__} instead of a {kind.__name__}"
    if kind is torch.Tensor:
        return _tensor_difference(expected, got)
    if isinstance(expected, dict):
        if list(expected) != list(got):
            return "other keys"
        pairs = [(expected[key], got[key]) for key in expected]
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"{len(got)} fields instead of {len(expected)}"
        pairs = list(zip(expected, got, strict=True))
    else:
        same = expected is got or (kind in (str, bytes) and expected == got)
        return None if same else "other values"
    for one, other in pairs:
        found = difference(one, other)
        if found is not None:
            return found
    return None


def _tensor_difference(expected: torch.Tensor, got: torch.Tensor) -> str | None:
    for name in ("dtype", "shape", "device", "layout", "requires_grad", "is_leaf"):
        if getattr(expected, name) != getattr(got, name):
            return f"{name} {getattr(got, name)} instead of {getattr(expected, name)}"
    if expected.stride() != got.stride():
        return f"strides {got.stride()} instead of {expected.stride()}"
    # By bytes: two NaNs are not equal, and 0.0 and -0.0 are.
    if not torch.equal(_bytes(expected), _bytes(got)):
        return "other values"
    return None


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).contiguous().view(torch.uint8)
