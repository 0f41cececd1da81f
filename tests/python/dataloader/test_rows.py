"""One indexing a batch is what torch makes of the rows, to the last bit, or it is left to torch."""

from __future__ import annotations

from typing import Any

import batches
import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import Subset, TensorDataset

from gpuutil.hooks.dataloader import rows
from gpuutil.hooks.dataloader.unusual import Unusual

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
LAYOUTS: dict[str, Any] = {
    "plain": lambda t: t,
    "every second row": lambda t: t.repeat_interleave(2, 0)[::2],
    "one row for all": lambda t: t[:1].expand_as(t),
    "part of wider rows": lambda t: torch.cat([t, t], -1)[..., : t.shape[-1]] if t.dim() > 1 else t,
    "last two swapped": lambda t: t.transpose(-1, -2) if t.dim() > 2 else t,
    "channels last": lambda t: t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t,
    "permuted": lambda t: t.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) if t.dim() == 4 else t,
    "rows channels last": lambda t: (
        t.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3) if t.dim() == 5 else t
    ),
    "columns first": lambda t: t.t().contiguous().t() if t.dim() == 2 else t,
}


@st.composite
def tensors(draw, length: int) -> torch.Tensor:
    shape = (length, *draw(st.lists(st.integers(1, 3), max_size=2) | st.tuples(*[st.integers(1, 3)] * 4)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    raw = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
    dtype = draw(st.sampled_from(DTYPES))
    if dtype == torch.bool:
        values = raw[..., 0] > 127
    else:
        size = torch.empty(0, dtype=dtype).element_size()
        values = raw[..., :size].contiguous().view(dtype).reshape(shape)  # NaNs of every kind included
    return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](values)


@st.composite
def datasets(draw) -> Any:
    length = draw(st.integers(1, 9))
    dataset: Any = TensorDataset(*[draw(tensors(length)) for _ in range(draw(st.integers(1, 3)))])
    for _ in range(draw(st.integers(0, 2))):
        chosen = draw(st.lists(st.integers(-len(dataset), len(dataset) - 1), min_size=1, max_size=9))
        kinds: list[Any] = [list, tuple, torch.tensor, numpy.array]
        dataset = Subset(dataset, draw(st.sampled_from(kinds))(chosen))
    return dataset


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_batch_by_one_indexing_is_torchs_batch(data):
    dataset = data.draw(datasets())
    indices = data.draw(st.lists(st.integers(0, len(dataset) - 1), min_size=1, max_size=12))
    expected = batches.stock_fetch(dataset, indices)
    try:
        got = rows.fetch(dataset, indices)
    except (Unusual, IndexError):
        return
    batches.assert_same(expected, got)


def _numbers(length: int = 10) -> TensorDataset:
    return TensorDataset(torch.arange(length * 3.0).reshape(length, 3), torch.arange(length))


@pytest.mark.parametrize("wrap", [
    lambda d: d,
    lambda d: Subset(d, [4, 2, 7, 7]),
    lambda d: Subset(d, range(1, 9, 2)),
    lambda d: Subset(d, numpy.array([5, 1, 2, -1])),
    lambda d: Subset(d, torch.tensor([5, 1, 2, 3])),
    lambda d: Subset(Subset(d, [9, 8, 7, 6, 5]), (3, 1, 0, 2)),
])  # fmt: skip
def test_the_usual_data_sets_are_covered(wrap):
    dataset = wrap(_numbers())
    assert rows.problem(dataset) is None
    if isinstance(dataset, Subset) and type(dataset.indices) is numpy.ndarray:
        dataset.indices = abs(dataset.indices)
    batches.assert_same(batches.stock_fetch(dataset, [3, 0, 2]), rows.fetch(dataset, [3, 0, 2]))


@pytest.mark.parametrize("layout", ["plain", "every second row", "one row for all", "part of wider rows"])
def test_rows_that_lie_contiguous_are_covered_wherever_they_lie(layout):
    tensor = LAYOUTS[layout](torch.rand(6, 4))
    assert rows.problem(TensorDataset(tensor)) is None


@pytest.mark.parametrize("layout", ["channels last", "permuted", "rows channels last"])
def test_rows_whose_layout_torch_may_keep_are_left_to_torch(layout):
    shape = (6, 2, 3, 4, 5) if layout == "rows channels last" else (6, 2, 4, 5)
    dataset = TensorDataset(LAYOUTS[layout](torch.rand(shape)))
    assert "contiguous" in rows.problem(dataset)
    if layout == "rows channels last":
        assert not batches.stock_fetch(dataset, [0, 1])[0].is_contiguous()


class Own(TensorDataset):
    pass


class Tagged(torch.Tensor):
    pass


def _unusual() -> dict[str, Any]:
    plain = torch.rand(4, 2)
    itself = TensorDataset(plain)
    itself.__getitems__ = lambda indices: [(plain[0],)] * len(indices)
    listed = TensorDataset(plain)
    listed.tensors = [plain]
    return {
        "subclass": Own(plain),
        "subset of a subclass": Subset(Own(plain), [0, 1]),
        "gradients": TensorDataset(plain, torch.rand(4, requires_grad=True)),
        "subclass of tensor": TensorDataset(plain.as_subclass(Tagged)),
        "parameter": TensorDataset(torch.nn.Parameter(plain, requires_grad=False)),
        "fetches by itself": itself,
        "a list of tensors": listed,
        "sparse": TensorDataset(plain.to_sparse()),
        "conjugated": TensorDataset(torch.rand(4, 2, dtype=torch.complex64).conj()),
        "another device": TensorDataset(plain.to("meta")),
        "no numbers in a row": TensorDataset(torch.rand(4, 0)),
        "not a data set of torch's": [1, 2, 3],
    }


@pytest.mark.parametrize("name", _unusual())
def test_what_is_not_clearly_covered_is_refused_with_a_reason(name):
    dataset = _unusual()[name]
    assert rows.problem(dataset)
    with pytest.raises(Unusual):
        rows.fetch(dataset, [0, 1])


@pytest.mark.parametrize("indices", [
    [], [True, False], [0, True], (0, 1), [torch.tensor(1)], [numpy.int64(1), 2], torch.tensor([0, 1]),
    numpy.array([0, 1]), 3, [[0, 1]], ["0"], [1.0], [None], [slice(0, 2)],
])  # fmt: skip
def test_indices_that_are_not_lists_of_numbers_are_left_to_torch(indices):
    with pytest.raises(Unusual):
        rows.fetch(_numbers(), indices)


@pytest.mark.parametrize("index", [-1, -10, 10, -11, 1 << 70])
def test_indices_from_the_end_or_out_of_range_never_make_a_batch(index):
    for dataset, indices in ((_numbers(), [0, index]), (Subset(_numbers(), [0, index]), [1])):
        with pytest.raises((IndexError, OverflowError, RuntimeError, ValueError, TypeError)):
            rows.fetch(dataset, indices)


def test_a_batch_so_large_that_copying_is_all_that_counts_is_left_to_torch(monkeypatch):
    monkeypatch.setattr(rows, "MOST_BYTES", 3 * 20 - 1)
    with pytest.raises(Unusual, match="large"):
        rows.fetch(_numbers(), [0, 1, 2])
    rows.fetch(_numbers(), [0, 1])


def test_a_mode_that_sees_every_call_is_left_alone():
    with torch.device("cpu"), pytest.raises(Unusual, match="mode"):
        rows.fetch(_numbers(), [0, 1])
