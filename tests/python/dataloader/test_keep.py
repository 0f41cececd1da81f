"""Workers that outlive the epoch: the same batches, draws and errors as without, and nothing left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import random
import signal
import threading
import time
import types
from typing import Any

import numpy
import pytest
import torch
from shapes import Eager, Items, Noisy, Ragged, Squares, firsts, init
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
)
from torch.utils.data import _utils as torch_utils
from torch.utils.data._utils import pin_memory as torch_pin
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from gpuutil.hooks.dataloader import capability, handover, keep, reseed
from gpuutil.hooks.dataloader.keep import KEEP, Keeper
from gpuutil.hooks.dataloader.live import LiveLoader
from gpuutil.hooks.dataloader.patch import patch_shutdown
from gpuutil.hooks.dataloader.refusal import NotPossible
from gpuutil.hooks.patching import PatchStack


@pytest.fixture
def kept():
    """kept(loader) -> Keeper, through which every iter(loader) goes from then on."""
    stack, keepers = PatchStack(), {}
    original = DataLoader.__iter__

    def __iter__(self: DataLoader) -> Any:
        keeper = keepers.get(id(self))
        if keeper is None:
            return original(self)
        iterator = keeper.reopen(self)
        if iterator is None:
            iterator = original(self)
        keeper.bind(iterator)
        return iterator

    def keep_(loader: DataLoader) -> Keeper:
        keepers[id(loader)] = Keeper(loader)
        return keepers[id(loader)]

    stack.replace(DataLoader, "__iter__", __iter__)
    patch_shutdown(stack)
    yield keep_
    for keeper in keepers.values():
        keeper.close()
    assert stack.undo() == []


@pytest.fixture(autouse=True)
def no_process_left():
    yield
    gc.collect()
    end = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.01)
    assert multiprocessing.active_children() == []


def seed_all() -> None:
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)


def states(*generators: Any) -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state(legacy=True)[1].tolist(),
        [g.get_state().tolist() for g in generators if isinstance(g, torch.Generator)],
        [g.getstate() for g in generators if isinstance(g, random.Random)],
    )


def shape(name: str, method: str) -> tuple[DataLoader, tuple[Any, ...]]:
    """A loader of a kind, and the generators of the user's that belong to it."""
    common: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": method}
    data = Noisy()
    if name == "sequential":
        return DataLoader(data, 4, **common), ()
    if name == "shuffled":
        return DataLoader(data, 5, shuffle=True, prefetch_factor=1, **common), ()
    if name == "own generator":
        own = torch.Generator().manual_seed(5)
        return DataLoader(data, 5, shuffle=True, generator=own, drop_last=True, **common), (own,)
    if name == "replacement":
        own = torch.Generator().manual_seed(5)
        sampler = RandomSampler(data, replacement=True, num_samples=40, generator=own)
        return DataLoader(data, 3, sampler=sampler, timeout=60, **common), (own,)
    if name == "eager sampler":
        sampler = Eager(24, 3)
        return DataLoader(data, 4, sampler=sampler, **common), (sampler.own,)
    if name == "eager items":
        sampler = Eager(24, 3)
        return DataLoader(data, batch_size=None, sampler=sampler, **common), (sampler.own,)
    if name == "batch sampler":
        return DataLoader(data, batch_sampler=Ragged(24, 2), **common), ()
    if name == "single items":
        return DataLoader(data, batch_size=None, **common), ()
    if name == "less batches than workers":
        common["num_workers"] = 3
        return DataLoader(Subset(data, range(4)), 4, **common), ()
    raise ValueError(name)


SHAPES = [
    "sequential",
    "shuffled",
    "own generator",
    "replacement",
    "eager sampler",
    "eager items",
    "batch sampler",
    "single items",
    "less batches than workers",
]


def epochs(loader: DataLoader, generators: tuple[Any, ...], count: int, at_batch: Any = None) -> Any:
    """(what was seen and drawn, the workers of each epoch)."""
    seen, pids = [], []
    seed_all()
    for epoch in range(count):
        of_epoch: set[int] = set()
        for i, batch in enumerate(loader):
            if at_batch is not None:
                at_batch(epoch, i)
            rows = batch.reshape(-1, batch.shape[-1])
            of_epoch |= {int(p) for p in rows[:, -1]}
            seen.append((rows[:, :-1].tolist(), states(*generators), torch.rand(()).item()))
        seen.append(states(*generators))
        pids.append(of_epoch)
    return seen, pids


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "fork") for name in SHAPES), ("own generator", "forkserver"), ("eager items", "forkserver")],
)
def test_everything_is_bit_for_bit_what_it_is_without(kept, name, method):
    expected, fresh = epochs(*shape(name, method), 6)
    loader, generators = shape(name, method)
    keeper = kept(loader)

    def switch(epoch: int, batch: int) -> None:
        if batch == 0 and epoch in (0, 4):
            keeper.request(epoch == 0)
        if batch == 0:
            assert keeper.reusing == (epoch in (2, 3, 4)) and keeper.problem is None
            assert keeper.in_effect == (epoch in (2, 3, 5))

    got, pids = epochs(loader, generators, 6, switch)
    assert got == expected
    assert len(set().union(*fresh)) >= 6
    assert pids[2] <= pids[1] and pids[3] <= pids[1] and pids[4] <= pids[1]
    assert not pids[0] & pids[1] and not pids[5] & pids[1]
    assert loader.persistent_workers is False and loader._iterator is None


def test_each_pass_has_its_own_iterator_of_torchs_own_class(kept):
    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    iterators = []
    for _ in range(3):
        iterators.append(iter(loader))
        assert firsts(iterators[-1]) == list(range(8))
    assert keeper.reusing and len({id(i) for i in iterators}) == 3
    assert {type(i) for i in iterators} == {_MultiProcessingDataLoaderIter}
    again = iter(loader)
    assert all(next(old, None) is None for old in iterators)
    assert firsts(again) == list(range(8))


def test_the_sampler_is_asked_as_often_as_by_the_stock_loader(kept):
    samplers = Eager(24, 3), Eager(24, 3)
    for sampler in samplers:
        loader = DataLoader(Squares(24, 0), batch_size=None, sampler=sampler, num_workers=2)
        if sampler is samplers[1]:
            kept(loader).request(True)
        for _ in range(4):
            list(loader)
    assert samplers[0].calls == samplers[1].calls == 8


def run_kept(keeper: Keeper, loader: DataLoader, passes: int = 2) -> set[int]:
    """Passes until the workers were kept; their process ids."""
    keeper.request(True)
    for _ in range(passes):
        for _batch in loader:
            pass
    (parked,) = keeper._slot
    return {p.pid for p in parked.processes}


def test_an_early_break_ends_the_workers_and_the_next_passes_are_as_ever(kept):
    loader = DataLoader(Noisy(), 4, num_workers=2)
    keeper = kept(loader)
    run_kept(keeper, loader)
    for batch in loader:
        assert batch[0, 0] == 0
        break
    del batch
    gc.collect()
    assert keeper._slot == [] and multiprocessing.active_children() == []
    assert firsts(loader) == list(range(24)) and not keeper.reusing
    assert firsts(loader) == list(range(24)) and keeper.reusing


def test_a_pass_that_was_read_by_hand_to_its_last_batch_gives_its_workers_too(kept):
    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    iterator = iter(loader)
    for _ in range(len(loader)):
        next(iterator)
    assert keeper._slot == []
    del iterator
    assert len(keeper._slot) == 1
    assert firsts(loader) == list(range(8)) and keeper.reusing


def test_a_loop_that_never_reaches_the_end_is_told_so(kept):
    loader = DataLoader(Squares(40, 0), 2, num_workers=1)
    keeper = kept(loader)
    keeper.request(True)
    for _ in range(5):
        for _batch in loader:
            break
    assert not keeper.in_effect and "before its end" in keeper.problem


@pytest.mark.parametrize("where", ["while parked", "in a pass"])
def test_a_killed_worker_is_what_it_is_without(kept, where):
    loader = DataLoader(Noisy(24, 0.005), 4, num_workers=2)
    keeper = kept(loader)
    pids = run_kept(keeper, loader)
    victim = min(pids)
    if where == "while parked":
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.1)  # torch's handler would raise here
        assert firsts(loader) == list(range(24)) and not keeper.reusing
    else:
        with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(?s?\)? *\d+\)"):
            for i, _batch in enumerate(loader):
                if i == 0:
                    os.kill(victim, signal.SIGKILL)
        gc.collect()
        assert keeper._slot == []
        assert firsts(loader) == list(range(24))
    assert firsts(loader) == list(range(24)) and keeper.reusing


def test_a_worker_that_does_not_answer_is_replaced(kept, monkeypatch):
    monkeypatch.setattr(handover, "_SILENT_SECONDS", 0.3)
    monkeypatch.setattr(torch_utils, "MP_STATUS_CHECK_INTERVAL", 0.3)
    ask, victims = handover.Parked.ask, []

    def ask_a_stopped_one(parked: handover.Parked) -> None:
        victims.append(parked.processes[0].pid)
        os.kill(victims[-1], signal.SIGSTOP)
        ask(parked)

    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    monkeypatch.setattr(handover.Parked, "ask", ask_a_stopped_one)
    try:
        assert firsts(loader) == list(range(8))
        monkeypatch.undo()
        monkeypatch.setattr(handover, "_SILENT_SECONDS", 0.3)
        monkeypatch.setattr(torch_utils, "MP_STATUS_CHECK_INTERVAL", 0.3)
        assert firsts(loader) == list(range(8)) and not keeper.reusing
        assert "does not answer" in keeper.problem
    finally:
        for victim in victims:
            os.kill(victim, signal.SIGCONT)
    assert firsts(loader) == list(range(8)) and keeper.reusing


def test_an_error_of_an_item_is_the_users_and_the_workers_go_on(kept):
    def errors(loader: DataLoader) -> list[Any]:
        got: list[Any] = []
        iterator = iter(loader)
        while True:
            try:
                got.append(next(iterator).tolist())
            except StopIteration:
                return got
            except ValueError as error:
                got.append(str(error).splitlines()[-1])

    data = Items(12, {5}, set(), 0.0, False, False)
    expected = errors(DataLoader(data, 2, num_workers=2))
    loader = DataLoader(data, 2, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    assert [errors(loader) for _ in range(3)] == [expected] * 3 and keeper.reusing


class Failing(Eager):
    """Fails in the third pass: in `iter()`, at the first read, or at a later one."""

    def __init__(self, length: int, where: str, error: type[BaseException]) -> None:
        super().__init__(length, 1)
        self.where, self.error = where, error

    def __iter__(self) -> Any:
        order = list(super().__iter__())
        if self.where == "iter" and self.calls == 5:
            raise self.error("sampler")

        def read() -> Any:
            for i, index in enumerate(order):
                if self.where == i and self.calls == 6:
                    raise self.error("sampler")
                yield index

        return read()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["iter", 0, 18])
def test_an_error_of_the_sampler_is_the_users_and_draws_are_as_without(kept, where, error):
    def go(keeping: bool) -> Any:
        sampler = Failing(24, where, error)
        loader = DataLoader(Noisy(), batch_size=None, sampler=sampler, num_workers=2)
        keeper = kept(loader) if keeping else None
        if keeper is not None:
            keeper.request(True)
        seed_all()
        out: list[Any] = []
        for _ in range(5):
            try:
                out += [b[:-1].tolist() for b in loader]
            except error as raised:
                out.append(str(raised))
            out.append(states(sampler.own))
        return out, keeper

    expected, _ = go(False)
    got, keeper = go(True)
    assert got == expected
    assert keeper.reusing


def test_two_iterators_at_once_do_not_share_workers(kept):
    def pairs(loader: DataLoader) -> tuple[list[Any], list[set[int]]]:
        rows, pids = [], [set(), set()]
        for two in zip(loader, loader, strict=True):
            rows.append([b[:, :-1].tolist() for b in two])
            for side, batch in zip(pids, two, strict=True):
                side |= {int(p) for p in batch[:, -1]}
        return rows, pids

    plain = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    seed_all()
    expected = [pairs(plain)[0] for _ in range(4)]
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    keeper = kept(loader)
    keeper.request(True)
    seed_all()
    got = [pairs(loader) for _ in range(4)]
    assert [rows for rows, _ in got] == expected
    assert all(not one & other for _, (one, other) in got)
    assert got[1][1][0] == got[0][1][0] and len(keeper._slot) == 1


def test_an_evaluation_loader_in_between_is_left_alone(kept):
    train = DataLoader(Noisy(), 4, shuffle=True, num_workers=2)
    check = DataLoader(Noisy(8), 4, num_workers=1)
    keeper = kept(train)
    keeper.request(True)
    for _ in range(3):
        assert sorted(firsts(train)) == list(range(24))
        assert firsts(check) == list(range(8))
    assert keeper.reusing


# ---- what was started with another data set


class Told(Dataset):
    size = 1

    def __init__(self) -> None:
        self.offset, self.array = 0, numpy.zeros(1_000_000, dtype=numpy.int64)
        self.tensor, self.nested = torch.zeros(4, dtype=torch.int64), {"list": [0]}
        self.function = lambda: 0

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return (
            self.offset + int(self.array[-1]) + int(self.tensor[3]) + self.nested["list"][0]
        ) + self.function() + (self.size - 1) + (helper() - 1) + LIST[0]


FACTOR = 1
LIST = [0]


def helper() -> int:
    return FACTOR


def _change(data: Told, what: str) -> None:
    if what == "attribute":
        data.offset = 1
    elif what == "array":
        data.array[-1] = 1
    elif what == "tensor":
        data.tensor[3] = 1
    elif what == "nested":
        data.nested["list"][0] = 1
    elif what == "function":
        data.function = lambda: 1
    elif what == "class":
        Told.size = 2
    elif what == "global":
        globals()["FACTOR"] = 2
    elif what == "global list":
        LIST[0] = 1


@pytest.mark.parametrize(
    "what", ["attribute", "array", "tensor", "nested", "function", "class", "global", "global list"]
)
def test_a_data_set_that_was_changed_gets_fresh_workers(kept, monkeypatch, what):
    monkeypatch.setattr(Told, "size", 1)
    monkeypatch.setitem(globals(), "FACTOR", 1)
    monkeypatch.setitem(globals(), "LIST", [0])
    data = Told()
    loader = DataLoader(ConcatDataset([data]), 2, num_workers=1, multiprocessing_context="fork")
    keeper = kept(loader)
    run_kept(keeper, loader)
    _change(data, what)
    assert [b.tolist() for b in loader] == [[1, 1], [1, 1]]
    assert not keeper.reusing and keeper.problem is None
    assert [b.tolist() for b in loader] == [[1, 1], [1, 1]] and keeper.reusing


def test_a_data_set_that_is_changed_before_every_epoch_is_told_so(kept):
    data = Noisy(8)
    loader = DataLoader(data, 4, num_workers=1)
    keeper = kept(loader)
    keeper.request(True)
    for epoch in range(4):
        data.offset = 100 * epoch
        assert firsts(loader) == [100 * epoch + i for i in range(8)]
    assert "changed between" in keeper.problem and not keeper.reusing


def test_settings_of_the_loader_that_were_changed_hold_from_the_next_pass_on(kept):
    loader = DataLoader(Noisy(), 4, num_workers=2)
    keeper = kept(loader)
    run_kept(keeper, loader)
    loader.num_workers = 3
    iterator = iter(loader)
    assert len(iterator._workers) == 3 and not keeper.reusing
    assert firsts(iterator) == list(range(24))
    loader.prefetch_factor = 5
    iterator = iter(loader)
    assert keeper.reusing and iterator._prefetch_factor == 5 and iterator._tasks_outstanding == 6
    assert firsts(iterator) == list(range(24))
    loader.collate_fn = len
    assert list(loader) == [4] * 6 and not keeper.reusing


# ---- refusals and classes of exactness


class Endless(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(4))


class WithEpoch(Squares):
    epoch = 0

    def __init__(self) -> None:
        super().__init__(4)
        self.epoch = 0


class WithSetter(Squares):
    def set_epoch(self, epoch: int) -> None:
        pass


class Own(DataLoader):
    def __iter__(self) -> Any:
        return super().__iter__()


class Handle(Squares):
    def __init__(self) -> None:
        super().__init__(4)
        self.file = open(os.devnull)  # noqa: SIM115


class Slow(Squares):
    def __getstate__(self) -> Any:
        time.sleep(0.4)
        return self.__dict__


def _refused(make: Any, why: str) -> None:
    loader = make()
    keeper = Keeper(loader)
    assert why in keeper.prospect().refusal
    with pytest.raises(NotPossible, match=why):
        keeper.request(True)
    assert keeper.wanted is False


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: DataLoader(Endless(), num_workers=1), "iterable"),
        (lambda: DataLoader(WithEpoch(), num_workers=1), "told the epoch"),
        (lambda: DataLoader(Subset(WithSetter(8), range(4)), num_workers=1), "told the epoch"),
        (lambda: Own(Squares(4), num_workers=1), "iterators of its own"),
        (lambda: DataLoader(Handle(), num_workers=1), "cannot be shown"),
        (lambda: DataLoader(Slow(4), num_workers=1), "takes more than"),
    ],
)
def test_where_it_could_go_wrong_it_is_refused(make, why):
    _refused(make, why)


def test_worker_init_fn_and_own_generators_are_another_stream(kept):
    plain = DataLoader(Noisy(), num_workers=1)
    assert Keeper(plain).prospect() == keep.Prospect("", "exact", "")
    initialised = DataLoader(Items(8, set(), set(), 0, True, False), 2, num_workers=1, worker_init_fn=init)
    prospect = Keeper(initialised).prospect()
    assert prospect.exactness == "distribution" and "worker_init_fn" in prospect.reason
    keeper = kept(initialised)
    run_kept(keeper, initialised)
    assert firsts(initialised) == list(range(8)) and keeper.reusing
    for generator in (random.Random(1), numpy.random.default_rng(1), torch.Generator()):
        data = Squares(4)
        data.transform = types.SimpleNamespace(rng=generator)
        loader = DataLoader(data, num_workers=1)
        prospect = Keeper(loader).prospect()
        assert prospect.exactness == "distribution" and "generator" in prospect.reason


def test_tensors_of_a_data_set_are_proved_in_time_and_draws_nothing():
    loader = DataLoader(TensorDataset(torch.zeros(1000, 32), torch.arange(1000)), num_workers=1)
    before = states()
    keeper = Keeper(loader)
    begin = time.perf_counter()
    assert keeper.prospect().refusal == ""
    assert time.perf_counter() - begin < 1.0 and states() == before


# ---- torch's code


def test_the_check_of_torchs_code_passes_here_and_starts_nothing():
    before, threads = states(), threading.active_count()
    assert capability.rehearse("keep") is None
    assert states() == before and threading.active_count() == threads


def test_the_check_of_torchs_code_finds_a_constructor_that_works_in_another_way(monkeypatch):
    class Other(handover._There):
        def Queue(self) -> Any:
            return super().Queue() if self._given else super().Event()

    monkeypatch.setattr(handover, "_There", Other)
    assert "rehearsal" in capability.rehearse("keep")


def test_the_seed_needs_nothing_of_ours_in_the_worker():
    task = reseed.Task((3, [4, 5]))
    task.calls = reseed.seeding(123, 0)
    payload = pickle.dumps(task)
    assert b"gpuutil" not in payload
    seed_all()
    torch_utils.worker._worker_info = torch_utils.worker.WorkerInfo(
        id=0, num_workers=1, seed=0, dataset=None
    )
    try:
        assert pickle.loads(payload) == (3, [4, 5])
        assert torch_utils.worker._worker_info.seed == 123
    finally:
        torch_utils.worker._worker_info = None
    got = states()
    random.seed(123)
    torch.manual_seed(123)
    numpy.random.seed(torch_utils.worker._generate_state(123, 0))
    assert states() == got


# ---- beside the rest


def test_a_pin_thread_is_started_for_each_pass_and_none_is_left(kept, monkeypatch):
    device = types.SimpleNamespace(type="cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: device)
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
    monkeypatch.setattr(torch_pin, "pin_memory", lambda data, device=None: data + 1000)
    number = torch.get_num_threads()
    try:
        loader = DataLoader(Squares(8, 0), 2, num_workers=2, pin_memory=True)
        keeper = kept(loader)
        pids = run_kept(keeper, loader)
        for _ in range(3):
            iterator = iter(loader)
            thread = iterator._pin_memory_thread
            assert firsts(iterator) == [1000 + i for i in range(8)] and keeper.reusing
            assert not thread.is_alive()
        assert {p.pid for p in keeper._slot[0].processes} == pids
        for _batch in loader:
            break
        gc.collect()
        assert multiprocessing.active_children() == []
    finally:
        torch.set_num_threads(number)


def test_it_goes_together_with_more_workers_and_depth(kept):
    loader = DataLoader(Noisy(60, 0.002), 2, num_workers=2)
    live, keeper = LiveLoader(loader), kept(loader)
    keeper.request(True)
    try:
        for epoch in range(5):
            iterator = iter(loader)
            live.bind(iterator)
            got = []
            for i, batch in enumerate(iterator):
                got.append(batch)
                if i == 3 and epoch == 1:
                    live.request(workers=3, prefetch=4)
                if i == 3 and epoch == 3:
                    live.undo_all()
            assert firsts(got) == list(range(60))
            assert keeper.reusing == (epoch > 0)
    finally:
        live.close()


def test_a_forked_copy_leaves_the_workers_alone(kept):
    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = kept(loader)
    pids = run_kept(keeper, loader)
    child = os.fork()
    if child == 0:
        try:
            keeper._slot.clear()
            keeper.close()
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    iterator = iter(loader)
    assert keeper.reusing and {p.pid for p in iterator._workers} == pids
    assert firsts(iterator) == list(range(8))


def test_closing_in_the_middle_leaves_a_stock_iterator_and_then_nothing(kept):
    loader = DataLoader(Noisy(), 4, num_workers=2)
    keeper = kept(loader)
    run_kept(keeper, loader)
    attributes = set(vars(loader))
    iterator = iter(loader)
    got = [next(iterator)]
    keeper.close()
    assert KEEP not in vars(iterator) and len(multiprocessing.active_children()) == 2
    got += list(iterator)
    assert firsts(got) == list(range(24))
    assert multiprocessing.active_children() == [] and set(vars(loader)) == attributes
    with pytest.raises(NotPossible):
        keeper.request(True)


def test_passes_leave_no_descriptor_and_no_thread(kept):
    loader = DataLoader(Noisy(), 4, num_workers=2)
    keeper = kept(loader)
    run_kept(keeper, loader)

    def used() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = used()
    for _ in range(5):
        list(loader)
    assert keeper.reusing and used() == before
    keeper.request(False)
    list(loader)
    end = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)  # feeder threads of closed queues
    assert used()[0] < before[0] and used()[1] <= before[1]


def test_a_loader_that_is_dropped_takes_its_workers_along(kept):
    loader = DataLoader(Squares(8, 0), 2, num_workers=2)
    keeper = Keeper(loader)
    keeper.request(True)
    iterator = DataLoader._get_iterator(loader)
    keeper.bind(iterator)
    list(iterator)
    assert len(multiprocessing.active_children()) == 2
    del loader, iterator, keeper
    gc.collect()
    assert multiprocessing.active_children() == []


def test_nothing_is_kept_once_the_interpreter_ends(kept, monkeypatch):
    loader = DataLoader(Squares(8, 0), 2, num_workers=1)
    keeper = kept(loader)
    keeper.request(True)
    iterator = iter(loader)
    monkeypatch.setattr(torch_utils, "python_exit_status", True)
    assert not keep.hand_over(iterator)
    monkeypatch.undo()
    del iterator
