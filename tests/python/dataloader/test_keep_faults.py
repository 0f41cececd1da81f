"""Workers that outlive the epoch: breaks, errors, deaths, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from typing import Any

import pytest
from shapes import Eager, Items, Noisy, Squares, firsts
from torch.utils.data import DataLoader
from torch.utils.data import _utils as torch_utils

from gpuutil.hooks.dataloader import handover, keep
from gpuutil.hooks.dataloader.keep import KEEP, Keeper
from gpuutil.hooks.dataloader.refusal import NotPossible
from keeping import kept, no_process_left, run_kept, seed_all, states  # noqa: F401


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
        monkeypatch.setattr(handover.Parked, "ask", ask)
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
    monkeypatch.setattr(torch_utils, "python_exit_status", False)
    del iterator
