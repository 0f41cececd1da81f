"""What `_torch` writes about operators, seen through a recorder table made here."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import re
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
NAME = b"gpuutil.recorder.v1"

EMIT = ctypes.CFUNCTYPE(
    None, ctypes.c_uint16, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64
)
NOW = ctypes.CFUNCTYPE(ctypes.c_int64)
INTERN = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)
INERT = ctypes.CFUNCTYPE(ctypes.c_int)
SWITCH = ctypes.CFUNCTYPE(None, ctypes.c_int)
GRAD_MODE = ctypes.CFUNCTYPE(ctypes.c_int)
SET_OBSERVER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # also the type of set_grad_mode


class Table(ctypes.Structure):
    """csrc/record/table.h."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("emit", EMIT),
        ("now_ns", NOW),
        ("intern", INTERN),
        ("inert", INERT),
        ("set_observer", SET_OBSERVER),
        ("set_grad_mode", SET_OBSERVER),
    ]


def _event_kinds() -> dict[int, str]:
    """The enumerators of csrc/record/event.h, whose numbers cross the table."""
    text = (ROOT / "csrc/record/event.h").read_text()
    body = re.search(r"enum class EventKind : uint16_t \{(.*?)\};", text, re.DOTALL).group(1)
    names = re.findall(r"^\s*(\w+)(?: = 0)?,", body, re.MULTILINE)
    return dict(enumerate(names))


def capsule(table: Table, name: bytes = NAME):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(table), name, None)


class Recorder:
    """The other side of the table. Events are (kind, subject, end_ns, value, thread)."""

    def __init__(self) -> None:
        self.kinds = _event_kinds()
        self.events: list[tuple[str, int, int, int, int]] = []
        self.names: list[str] = []
        self.is_inert = False
        self.asked = 0  # calls of inert(): each is one callback that PyTorch made
        self.switch = None
        self.grad_mode = None
        self.table = Table(
            ctypes.sizeof(Table),
            0,
            EMIT(self._emit),
            NOW(time.monotonic_ns),
            INTERN(self._intern),
            INERT(self._inert),
            SET_OBSERVER(self._set_observer),
            SET_OBSERVER(self._set_grad_mode),
        )

    def _emit(self, kind: int, flags: int, subject: int, time_ns: int, value: int) -> None:
        thread = threading.get_ident()
        self.events.append((self.kinds[kind], subject, time_ns, value, thread))

    def _intern(self, name: bytes, length: int) -> int:
        self.names.append(name[:length].decode())
        return len(self.names) - 1

    def _inert(self) -> int:
        self.asked += 1
        return int(self.is_inert)

    def _set_observer(self, address: int | None) -> None:
        self.switch = SWITCH(address) if address else None

    def _set_grad_mode(self, address: int | None) -> None:
        self.grad_mode = GRAD_MODE(address) if address else None

    def on(self) -> None:
        self.switch(1)

    def off(self) -> None:
        self.switch(0)

    def take(self) -> list[tuple[str, int, int, int, int]]:
        events, self.events = self.events, []
        return events

    def count(self) -> Counter:
        return Counter(event[0] for event in self.take())


# One for the process: PyTorch may call into it as long as an operator is under way.
_recorder: Recorder | None = None


@pytest.fixture
def recorder():
    global _recorder
    module = importlib.import_module("gpuutil._torch")
    if _recorder is None:
        _recorder = Recorder()
    module.connect(capsule(_recorder.table))
    _recorder.is_inert = False
    _recorder.names.clear()
    yield _recorder
    module.disconnect()
    _recorder.take()


def _loop():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    return step


def test_a_step_is_written_as_outermost_operators_nodes_and_ranges(recorder):
    step = _loop()
    recorder.on()
    step()
    recorder.off()
    events = recorder.take()
    kinds = [event[0] for event in events]
    assert set(kinds) == {"op", "backward_node", "zero_grad", "optimizer_begin", "sync"}
    assert kinds.count("sync") == 1  # .item(): aten::item around aten::_local_scalar_dense
    assert kinds.count("zero_grad") == kinds.count("optimizer_begin") == 1
    # ones, linear, relu, linear, sum before the nodes; the optimizer's and item() behind them.
    assert kinds.index("backward_node") > kinds.index("zero_grad")
    assert kinds.index("optimizer_begin") > len(kinds) - 1 - kinds[::-1].index("backward_node")
    assert kinds[-2:] == ["sync", "op"]

    ends = [event[2] for event in events]
    assert ends == sorted(ends)
    spans = sorted((e[2] - e[3], e[2]) for e in events if e[0] in ("op", "backward_node"))
    assert all(begin <= end for begin, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_nothing_stays_registered_while_the_observer_is_off(recorder):
    step = _loop()
    recorder.on()
    step()
    recorder.off()
    assert recorder.asked > 0
    recorder.take()
    recorder.asked = 0
    step()
    assert recorder.asked == 0
    assert recorder.take() == []


def test_switching_twice_is_switching_once(recorder):
    recorder.on()
    recorder.on()
    torch.ones(1)
    recorder.off()
    recorder.off()
    torch.ones(1)
    assert recorder.count() == {"op": 1}


def test_nothing_is_written_while_inert_and_the_observer_still_goes(recorder):
    recorder.on()
    recorder.is_inert = True
    torch.ones(1)
    assert recorder.take() == []
    recorder.off()
    recorder.asked = 0
    torch.ones(1)
    assert recorder.asked == 0


def test_a_range_that_was_open_when_the_observer_came_is_not_reported(recorder):
    with torch.profiler.record_function("Optimizer.zero_grad#X.zero_grad"):
        recorder.on()
        torch.ones(1)
    torch.ones(1)
    recorder.off()
    assert recorder.count() == {"op": 2}


def test_a_range_that_is_open_when_the_observer_goes_or_comes_back_is_not_reported(recorder):
    recorder.on()
    with torch.profiler.record_function("Optimizer.zero_grad#X.zero_grad"):
        torch.ones(1)
        recorder.off()
        torch.ones(1)
        recorder.on()
        with torch.profiler.record_function("Optimizer.zero_grad#Y.zero_grad"):
            torch.ones(1)
    torch.ones(1)
    recorder.off()
    assert recorder.count() == {"op": 3, "zero_grad": 1}


def test_an_observer_that_comes_inside_an_operator_counts_depth_anew(recorder):
    class Switch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            recorder.on()
            return x + 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    Switch.apply(torch.ones(1, requires_grad=True))
    torch.ones(1)
    recorder.off()
    assert recorder.count() == {"op": 2}


def test_nested_operators_are_one_and_syncs_are_seen_at_any_depth(recorder):
    class Peek(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * float(x.sum().item())

        @staticmethod
        def backward(ctx, grad):
            return grad * float(grad.sum().item())

    x = torch.ones(3, requires_grad=True)
    recorder.on()
    y = Peek.apply(x)
    recorder.off()
    assert recorder.count() == {"op": 1, "sync": 1}
    recorder.on()
    y.backward(torch.ones(3))
    recorder.off()
    counts = recorder.count()
    assert counts["sync"] == 1
    assert counts["backward_node"] == 2  # Peek and the accumulation into x.grad


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.equal(x, x),
        lambda x: x.masked_select(x > 0),
    ],
    ids=["item", "bool", "nonzero", "mask", "equal", "masked_select"],
)
def test_operators_that_make_the_host_wait_are_syncs_once(recorder, call):
    x = torch.ones(3)
    recorder.on()
    call(x)
    recorder.off()
    assert recorder.count()["sync"] == 1


def test_distributed_ranges_are_named_and_ranges_of_the_user_are_not_written(recorder):
    recorder.on()
    for name in ("FSDP::pre_forward (a.b)", "DistributedDataParallel.forward", "mine", "FSDP"):
        with torch.profiler.record_function(name):
            pass
    recorder.off()
    events = recorder.take()
    assert [event[0] for event in events] == ["range", "range"]
    named = [recorder.names[event[1]] for event in events]
    assert named == ["FSDP::pre_forward (a.b)", "DistributedDataParallel.forward"]


def test_the_calls_of_another_thread_are_outermost_there(recorder):
    recorder.on()

    def work() -> None:
        for _ in range(5):
            torch.ones(2).add_(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recorder.off()
    events = recorder.take()
    assert Counter(event[0] for event in events) == {"op": 10}
    assert {event[4] for event in events} != {threading.get_ident()}


def test_more_open_ranges_than_are_kept_cost_only_themselves(recorder):
    recorder.on()

    def nest(depth: int) -> None:
        if depth == 0:
            torch.ones(1)
            return
        with torch.profiler.record_function("FSDP::nested"):
            nest(depth - 1)

    nest(100)
    recorder.take()
    torch.ones(1)
    recorder.off()
    assert recorder.count() == {"op": 1}


def test_the_profiler_of_torch_sees_the_same_with_and_without_the_observer(recorder):
    step = _loop()

    def seen() -> Counter:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            step()
        return Counter({event.key: event.count for event in profile.key_averages()})

    without = seen()
    recorder.on()
    assert seen() == without
    recorder.off()


def test_a_forked_child_leaves_the_registry_of_torch_alone(recorder):
    recorder.on()
    child = os.fork()
    if child == 0:
        recorder.is_inert = True  # as the fork handler of _core does
        recorder.take()
        recorder.off()
        recorder.asked = 0
        torch.ones(1)
        # Still registered, because taking it out could block; asked, and silent.
        os._exit(0 if recorder.asked > 0 and not recorder.events else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    recorder.take()
    torch.ones(1)
    assert recorder.count() == {"op": 1}
    recorder.off()


def test_the_gradient_mode_is_that_of_the_calling_thread(recorder):
    assert recorder.grad_mode() == 1
    elsewhere = []
    with torch.no_grad():
        assert recorder.grad_mode() == 0
        thread = threading.Thread(target=lambda: elsewhere.append(recorder.grad_mode()))
        thread.start()
        thread.join()
    assert elsewhere == [1]


def test_disconnecting_takes_back_what_was_handed_over(recorder):
    importlib.import_module("gpuutil._torch").disconnect()
    assert recorder.switch is None
    assert recorder.grad_mode is None


def test_a_table_of_another_name_or_an_older_one_is_refused():
    module = importlib.import_module("gpuutil._torch")
    table = Table(ctypes.sizeof(Table))
    with pytest.raises(ValueError, match="name"):
        module.connect(capsule(table, b"gpuutil.recorder.v0"))
    table.size -= 8
    with pytest.raises(ValueError, match="older"):
        module.connect(capsule(table))


def test_allocator_statistics_are_absent_where_there_is_no_caching_allocator():
    module = importlib.import_module("gpuutil._torch")
    assert module.device_memory_stats("cpu", 0) is None
    assert module.device_memory_stats("cuda", 4096) is None
    if not torch.cuda.is_available():
        assert module.device_memory_stats("cuda", 0) is None
    with pytest.raises(ValueError, match="device_type"):
        module.device_memory_stats("abacus", 0)
