"""Stack-first collate is `default_collate`, to the last bit, or it is left to it."""

from __future__ import annotations

import collections
from typing import Any

import batches
import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import default_collate
from torch.utils.data._utils import collate as stock

from gpuutil.hooks.dataloader import stacking
from gpuutil.hooks.dataloader.unusual import Unusual

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 uint16 >f4".split()
Point = collections.namedtuple("Point", "x y")
ARRAYS: dict[str, Any] = {
    "plain": lambda a: a,
    "swapped": lambda a: a.swapaxes(0, -1),
    "columns first": lambda a: numpy.asfortranarray(a),
    "channels last": lambda a: (
        numpy.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if a.ndim == 4 else a
    ),
    "backwards": lambda a: a[::-1],
    "every second": lambda a: numpy.repeat(a, 2, 0)[::2],
    "of one row": lambda a: numpy.broadcast_to(a[:1], a.shape),
    "matrix": lambda a: a.view(numpy.matrix) if a.ndim == 2 else a,
    "odd strides of one": lambda a: numpy.lib.stride_tricks.as_strided(
        a, a.shape, tuple(s * 7 if n == 1 else s for n, s in zip(a.shape, a.strides, strict=True))
    ),
}


def _array(shape: tuple[int, ...], dtype: str, seed: int, layout: str) -> numpy.ndarray:
    kind = numpy.dtype(dtype)
    raw = numpy.random.Generator(numpy.random.PCG64(seed)).integers(0, 256, (*shape, kind.itemsize), numpy.uint8)
    values = (raw[..., 0] > 127) if dtype == "bool" else raw.view(kind).reshape(shape)
    return ARRAYS[layout](values) if shape else values


@st.composite
def samples(draw) -> list[Any]:
    count = draw(st.integers(1, 6))

    def leaf(depth: int) -> list[Any]:
        """One value for each sample, all of one kind unless chance has it otherwise."""
        kind = draw(st.sampled_from(["array"] * 4 + ["float", "int", "bool", "str", "numpy", "tensor", "inside"]))
        seeds = [draw(st.integers(0, 50)) for _ in range(count)]
        if kind == "array":
            size = st.integers(0, 3)
            shape = tuple(draw(st.lists(size, max_size=3) | st.tuples(size, size, size, size)))
            dtype, layout = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(["plain"] * 6 + list(ARRAYS)))
            made = [_array(shape, dtype, seed, layout) for seed in seeds]
            if draw(st.integers(0, 3)) == 0:
                odd = draw(st.sampled_from(DTYPES)), 1, draw(st.sampled_from(list(ARRAYS)))
                made[-1] = _array(shape, *odd)
            return made
        if kind == "inside" and depth < 3:
            return container(depth + 1)
        plain: dict[str, Any] = {
            "float": lambda s: s / 3, "int": int, "bool": lambda s: s > 25, "str": str,
            "numpy": lambda s: numpy.float32(s), "tensor": lambda s: torch.full((2,), s), "inside": bytes,
        }  # fmt: skip
        return [plain[kind](seed) for seed in seeds]

    def container(depth: int) -> list[Any]:
        fields = [leaf(depth) for _ in range(draw(st.integers(1, 3)))]
        kind = draw(st.sampled_from(["tuple", "list", "dict", "point", "ordered"]))
        if kind == "dict":
            return [dict(zip("abc", values, strict=False)) for values in zip(*fields, strict=True)]
        if kind == "ordered":
            return [collections.OrderedDict(zip("ab", values)) for values in zip(*fields)]  # noqa: B905
        if kind == "point":
            return [Point(values[0], values[-1]) for values in zip(*fields, strict=True)]
        return [(tuple if kind == "tuple" else list)(values) for values in zip(*fields, strict=True)]

    return draw(st.sampled_from([leaf, container]))(0)


@settings(max_examples=400, deadline=None)
@given(samples())
def test_a_batch_stacked_first_is_torchs_batch(values):
    expected = batches.outcome(default_collate, values)
    try:
        got = stacking.collate(values)
    except Exception:
        return  # torch's own code is asked then, and says the same as it always did
    batches.assert_same_outcome(expected, got)


def _rows(dtype: str = "float32", count: int = 5) -> list[numpy.ndarray]:
    return [numpy.arange(6, dtype=dtype).reshape(2, 3) + i for i in range(count)]


@pytest.mark.parametrize("dtype", stacking._KINDS)
def test_every_usual_kind_of_number_is_stacked(dtype):
    values = [row.astype(dtype) for row in _rows("float64")]
    batches.assert_same(default_collate(values), stacking.collate(values))


def test_fields_that_are_no_arrays_come_out_as_torch_makes_them():
    values = [(row, 1.5 * i, i, "name", {"n": i, "row": row}, Point(row, i)) for i, row in enumerate(_rows())]
    got = stacking.collate(values)
    batches.assert_same(default_collate(values), got)
    assert [type(field) for field in got] == [torch.Tensor] * 3 + [tuple, dict, Point]
    assert got[1].dtype == torch.float64 and got[2].dtype == torch.int64


@pytest.mark.parametrize("change", [
    lambda rows: rows.__setitem__(3, rows[3].astype("float64")),
    lambda rows: rows.__setitem__(3, rows[3].astype("int32")),
    lambda rows: rows.__setitem__(3, rows[3][:1]),
    lambda rows: rows.__setitem__(3, numpy.asfortranarray(rows[3])),
    lambda rows: rows.__setitem__(3, rows[3].view(numpy.matrix)),
    lambda rows: rows.__setitem__(slice(None), [row[::-1] for row in rows]),
    lambda rows: rows.__setitem__(slice(None), [row[:0] for row in rows]),
    lambda rows: rows.__setitem__(slice(None), [row.astype(object) for row in rows]),
    lambda rows: rows.__setitem__(slice(None), [numpy.float32(1) for row in rows]),
    lambda rows: rows.clear(),
])  # fmt: skip
def test_arrays_that_are_not_all_alike_are_left_to_torch(change):
    values = _rows()
    change(values)
    expected = batches.outcome(default_collate, values)
    torchs = expected[0] if isinstance(expected, tuple) else Unusual
    with pytest.raises((Unusual, torchs)):
        stacking.collate(values)


class Counted(dict):
    copies = 0

    def __copy__(self) -> Any:
        Counted.copies += 1
        return Counted(self)


def test_no_code_of_the_scripts_own_is_run():
    values = [{"x": row, "own": Counted(a=1)} for row in _rows()]
    with pytest.raises(Unusual, match="Counted"):
        stacking.collate(values)
    assert Counted.copies == 0
    default_collate(values)
    assert Counted.copies == 1


def test_large_arrays_are_left_to_torch():
    side = stacking.MOST_ARRAY_BYTES // 4
    stacking.collate([numpy.zeros(side, "float32")] * 2)
    with pytest.raises(Unusual):
        stacking.collate([numpy.zeros(side + 1, "float32")] * 2)


def test_a_default_collate_that_the_script_extended_is_left_to_torch(monkeypatch):
    monkeypatch.setitem(stock.default_collate_fn_map, Point, lambda batch, **_: batch)
    with pytest.raises(Unusual, match="extended"):
        stacking.collate(_rows())


def test_the_batch_is_not_tied_to_the_samples():
    values = _rows()
    batch = stacking.collate(values)
    values[0][:] = 99
    assert batch[0].flatten().tolist() == [0, 1, 2, 3, 4, 5]
    batch.resize_(100)
