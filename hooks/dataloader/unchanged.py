"""Whether a data set is still what worker processes got when they were started.

A proof is a hash over everything that can be reached from the data set, the collate function and
the worker_init_fn: values, the memory of arrays, closures, and the plain global variables and class
attributes that the user's own code reads. Equal proofs: fresh workers would hold the same.
Only pickle's walk is used, nothing can be loaded from it, so what does not pickle by value (a
lambda, a local class, a lock) is told by identity and code. Taken on the consumer's thread under a
budget of time.
"""

from __future__ import annotations

import dis
import functools
import os
import pickle
import random
import site
import sys
import sysconfig
import threading
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from .payload import Budget, Parts
from .refusal import NotPossible

_BYTES = 4 << 30
"""No limit in practice: time is."""
_CHUNK = 1 << 20
_COPY_LIMIT = 16 << 20
_WAIT = 10
"""Times the CPU that a proof may take: how long it may last."""
_SMALL = 64
"""Global containers longer than this are told by identity and length."""
_BY_IDENTITY = (types.ModuleType, type(threading.Lock()), type(threading.RLock()))
_PLAIN = (int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, tuple, set, frozenset, dict)


class Proof:
    """`digest`: equal only if nothing changed. `owns_generator`: a random generator other than the
    global ones was among what was seen: its stream lives on in a worker that is kept."""

    __slots__ = ("digest", "owns_generator")

    def __init__(self, digest: str, owns_generator: bool) -> None:
        self.digest = digest
        self.owns_generator = owns_generator


class _Target(Budget):
    """Counts the CPU of this thread, which does not depend on what else the machine does, and gives
    up as well when a wait has lasted a multiple of it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds * _WAIT, _BYTES, keep=False)
        self._cpu = time.thread_time() + seconds
        self._limit = seconds

    def write(self, data: Any) -> int:
        if time.thread_time() > self._cpu:
            raise NotPossible(f"that takes more than {self._limit * 1e3:.0f} ms")
        return super().write(data)


def prove(parts: Parts, seconds: float) -> Proof:
    """Hashes what workers get. Draws nothing.

    Raises:
        NotPossible: it takes longer than `seconds` of CPU, or something cannot be told, with the
            reason.
    """
    target = _Target(seconds)
    pickler = _Pickler(target)
    try:
        pickler.dump((_surroundings(), parts))
    except NotPossible as refusal:
        reason: object = refusal
    except Exception as error:
        reason = error
    else:
        return Proof(target.hash.hexdigest(), pickler.owns_generator)
    raise NotPossible(f"that the data set stays the same between epochs cannot be shown: {reason}")


def _surroundings() -> tuple[Any, ...]:
    """What a forked worker inherits besides."""
    return (
        os.getcwd(),
        str(torch.get_default_dtype()),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
    )


class _Pickler(pickle.Pickler):
    def __init__(self, target: Budget) -> None:
        super().__init__(target, pickle.HIGHEST_PROTOCOL)
        self._target = target
        self._generators = _generator_kinds()
        self._seen: set[int] = set()
        self.owns_generator = False

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if isinstance(obj, self._generators):
            self.owns_generator = True
            if isinstance(obj, torch.Generator):
                return _told(str(obj.device), bytes(memoryview(obj.get_state().numpy())))
            return NotImplemented
        if isinstance(obj, torch.Tensor):
            return self._tensor(obj)
        if kind.__module__.partition(".")[0] == "numpy" and hasattr(obj, "__array_interface__"):
            return self._array(obj)
        if kind is types.FunctionType:
            return self._function(obj)
        if isinstance(obj, type) and obj.__module__ != "builtins":
            first = self._first(obj) and _is_users(obj.__module__)
            return _told(id(obj), obj.__qualname__, _class_state(obj) if first else None)
        if isinstance(obj, _BY_IDENTITY):
            return _told(kind.__name__, id(obj))
        return NotImplemented

    def _first(self, obj: Any) -> bool:
        """Whether `obj` is met for the first time: it may refer to itself."""
        if id(obj) in self._seen:
            return False
        self._seen.add(id(obj))
        return True

    def _function(self, function: types.FunctionType) -> Any:
        code = function.__code__
        if not self._first(function):
            return _told(id(function))
        return _told(
            id(function),
            function.__qualname__,
            code.co_code,
            tuple(c for c in code.co_consts if isinstance(c, _PLAIN)),
            function.__defaults__,
            function.__kwdefaults__,
            tuple(_cells(function)),
            _globals_read(function) if _is_users(function.__module__) else None,
        )

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            raise NotPossible("it holds a tensor that is not plain memory of this process")
        about = (str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        if tensor.is_shared():
            return _told("shared", tensor.data_ptr(), *about)  # workers see what is written to it
        size = tensor.numel() * tensor.element_size()
        if not tensor.is_contiguous() and size > _COPY_LIMIT:
            raise NotPossible("it holds a large tensor that is not contiguous")
        if size:
            flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
            self._memory(memoryview(flat.numpy()))
        return _told("tensor", *about)

    def _array(self, array: Any) -> Any:
        numpy = sys.modules["numpy"]
        if not isinstance(array, numpy.ndarray) or array.dtype.hasobject:
            return NotImplemented
        about = (str(array.dtype), array.shape)
        if isinstance(array, numpy.memmap) and array.mode != "c":
            place = array.__array_interface__["data"][0]
            return _told("file", str(array.filename), place, *about)
        if not array.flags.c_contiguous and array.nbytes > _COPY_LIMIT:
            raise NotPossible("it holds a large array that is not contiguous")
        if array.nbytes:
            flat = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
            self._memory(memoryview(flat))
        return _told("array", *about)

    def _memory(self, view: memoryview) -> None:
        for begin in range(0, len(view), _CHUNK):
            self._target.write(view[begin : begin + _CHUNK])


def _told(*facts: Any) -> tuple[Any, ...]:
    """A reduction that stands for its facts."""
    return tuple, (facts,)


def _cells(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield "empty"


def _globals_read(function: types.FunctionType) -> tuple[Any, ...]:
    """Names and values of the global variables that a function reads, where they are plain."""
    return tuple(_values(function.__globals__, _global_names(function.__code__)))


@functools.lru_cache(maxsize=512)
def _global_names(code: types.CodeType) -> frozenset[str]:
    names = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return frozenset(names)


def _values(namespace: Mapping[str, Any], names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    generators = _generator_kinds()
    for name in sorted(names):
        value = namespace.get(name)
        if isinstance(value, _CONTAINERS):
            yield name, value if len(value) <= _SMALL else (id(value), len(value))
        elif isinstance(value, (types.FunctionType, type)):
            if _is_users(value.__module__):
                yield name, value
        elif isinstance(value, _PLAIN) or isinstance(value, generators):
            yield name, value


def _class_state(cls: type) -> tuple[Any, ...]:
    """Plain attributes and methods of a class and its bases."""
    state: list[Any] = []
    for base in cls.__mro__:
        if not _is_users(base.__module__):
            continue
        members = {name: getattr(value, "__func__", value) for name, value in vars(base).items()}
        state += _values(members, filter(lambda n: _matters(n, members[n]), members))
    return tuple(state)


def _matters(name: str, value: Any) -> bool:
    return isinstance(value, types.FunctionType) or not name.startswith("__")


@functools.lru_cache(maxsize=1024)
def _is_users(module: str | None) -> bool:
    """Whether a module is neither Python's nor an installed package."""
    if module == "__main__":
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return False
    path = os.path.abspath(file)
    roots = [sysconfig.get_paths()["stdlib"], os.path.dirname(torch.__file__)]
    roots += getattr(site, "getsitepackages", list)()
    installed = ("site-packages", "dist-packages")
    return not any(
        path.startswith(os.path.join(os.path.abspath(root), "")) for root in roots
    ) and not any(part in installed for part in path.split(os.sep))


def _generator_kinds() -> tuple[type, ...]:
    kinds: tuple[type, ...] = (torch.Generator, random.Random)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState)
    return kinds
