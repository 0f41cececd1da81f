"""What goes wrong beside live changes: errors, deaths, silence, threads, forks. One behaviour a
test."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from typing import Any

import pytest
import torch
from shapes import Backwards, Squares, bound, firsts, until_effective
from torch.utils.data import (
    DataLoader,
    Dataset,
    get_worker_info,
)
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from gpuutil.hooks.dataloader import worker as worker_module
from gpuutil.hooks.dataloader.live import LiveLoader, NotPossible


def test_the_users_own_error_comes_out_and_the_workers_stay(opened):
    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:  # cannot be re-raised from a copy
            super().__init__(a, b)

    class Failing(Squares):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 120:
                raise Odd(index, 2)
            return super().__getitem__(index)

    loader = DataLoader(Failing(), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, iterator)
    with pytest.raises(Odd) as caught:
        got.extend(iterator)
    assert caught.value.args == (120, 2)
    got += list(iterator)
    assert firsts(got) == [i for i in range(200) if i not in (120, 121)]
    assert live.state.fallback_reason is None


def test_what_fails_in_a_worker_only_goes_back_to_this_process(opened):
    class OnlyHere(Squares):
        def __getitem__(self, index: int) -> torch.Tensor:
            if get_worker_info() is not None and index > 100:
                raise OSError("no such device in a worker")
            return super().__getitem__(index)

    loader = DataLoader(OnlyHere(), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    assert firsts(iterator) == list(range(200))
    assert "no such device in a worker" in live.state.fallback_reason
    assert live.state.workers_active == 0 and live.state.worker_pids == ()


def test_a_batch_that_does_not_pickle_goes_back_to_this_process(opened):
    loader = DataLoader(Squares(80), 2, collate_fn=lambda items: (torch.stack(items), lambda: None))
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=1)
    assert firsts(b for b, _ in iterator) == list(range(80))
    assert "does not pickle" in live.state.fallback_reason


@pytest.mark.parametrize("stock", [0, 2])
def test_a_killed_worker_of_ours_costs_nothing_but_itself(opened, stock):
    loader = DataLoader(Squares(300), 2, num_workers=stock)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=stock + 2)
    got = until_effective(live, iterator)
    os.kill(live.state.worker_pids[-1], signal.SIGKILL)
    got += list(iterator)
    assert firsts(got) == list(range(300))
    assert "killed by signal 9" in live.state.fallback_reason


def test_a_killed_stock_worker_gives_the_stock_error(opened):
    loader = DataLoader(Squares(4000), 2, num_workers=2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=3)
    until_effective(live, iterator)
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="DataLoader worker"):
        for _ in iterator:
            pass


def test_a_stopped_worker_does_not_stop_training(opened, monkeypatch):
    from gpuutil.hooks.dataloader import conveyor

    monkeypatch.setattr(conveyor.Conveyor.__init__, "__kwdefaults__", {
        **conveyor.Conveyor.__init__.__kwdefaults__, "patience": 0.5,
    })  # fmt: skip
    monkeypatch.setattr(worker_module, "GRACE_SECONDS", 0.2)
    loader = DataLoader(Squares(100), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, iterator)
    os.kill(live.state.worker_pids[0], signal.SIGSTOP)
    got += list(iterator)
    assert firsts(got) == list(range(100))
    assert "no answer" in live.state.fallback_reason


def test_a_failing_worker_init_fn_admits_nobody(opened):
    def init(worker_id: int) -> None:
        raise LookupError("not today")

    loader = DataLoader(Squares(60), 2, worker_init_fn=init)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    assert firsts(iterator) == list(range(60))
    assert any("not today" in failure for failure in live.state.failures)
    assert not live.state.effective and live.state.workers_active == 0


def test_a_worker_that_never_reports_is_given_up(opened, monkeypatch):
    monkeypatch.setitem(worker_module.READY_SECONDS, "fork", 0.1)
    loader = DataLoader(Squares(100), 2, worker_init_fn=lambda worker_id: time.sleep(1))
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=1)
    assert firsts(iterator) == list(range(100))
    assert any("not ready" in failure for failure in live.state.failures)


def test_the_timeout_of_the_loader_holds_for_added_workers(opened):
    class Stuck(Squares):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index >= 60:
                time.sleep(4)
            return super().__getitem__(index)

    loader = DataLoader(Stuck(), 1, num_workers=1, timeout=1)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    until_effective(live, iterator)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        for _ in iterator:
            pass
    assert time.monotonic() - begin < 3.5


def test_an_early_break_frees_the_iterator_without_the_collector(opened):
    loader = DataLoader(Squares(), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    until_effective(live, iterator)
    gone = weakref.ref(iterator)
    gc.disable()
    try:
        del iterator
        assert gone() is None
    finally:
        gc.enable()
    assert firsts(bound(live, loader)) == list(range(200))


def test_an_iterator_that_moves_to_another_thread_goes_back_to_stock(opened):
    loader = DataLoader(Squares(80), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, iterator)
    thread = threading.Thread(target=lambda: got.extend(iterator))
    thread.start()
    thread.join()
    assert firsts(got) == list(range(80))
    assert "another thread" in live.state.fallback_reason


def test_a_forked_copy_of_the_trainer_goes_on_by_itself(opened):
    loader = DataLoader(Squares(80), 2)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, iterator)
    rest = list(range(2 * len(got), 80))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int(firsts(iterator) != rest)
            del iterator
            gc.collect()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert firsts(got + list(iterator)) == list(range(80))
    assert live.state.fallback_reason is None


def test_close_in_mid_epoch_leaves_the_stock_iterator_and_no_process(opened):
    loader = DataLoader(Squares(), 2, num_workers=1)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=3)
    got = until_effective(live, iterator)
    pids = live.state.worker_pids[1:]
    live.close()
    assert all(not os.path.exists(f"/proc/{pid}") for pid in pids) and not worker_module._held
    got += [next(iterator) for _ in range(8)]
    assert type(iterator) is _MultiProcessingDataLoaderIter
    assert not [name for name in vars(iterator) if "gpuutil" in name]
    assert firsts(got + list(iterator)) == list(range(200))
    with pytest.raises(NotPossible):
        live.request(workers=2)


def test_ten_runs_leave_processes_threads_and_descriptors_flat(opened):
    def once() -> None:
        loader = DataLoader(Squares(40), 2)
        live = LiveLoader(loader)
        iterator = bound(live, loader)
        live.request(workers=2)
        until_effective(live, iterator)
        list(iterator)
        live.close()

    once()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(9):
        once()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


@pytest.mark.parametrize("epochs", [3])
def test_a_shared_generator_moves_as_in_the_stock_loader_after_early_breaks(opened, epochs):
    def run(changes: bool) -> Any:
        generator = torch.Generator().manual_seed(5)
        loader = DataLoader(Squares(21, 0), 2, shuffle=True, generator=generator)
        live = opened(loader)
        out = []
        for _ in range(epochs):
            iterator = bound(live, loader) if changes else iter(loader)
            if changes:
                live.request(workers=2, prefetch=6)
                live.pool.gave_up = False
            for i, batch in enumerate(iterator):
                out.append(batch.tolist())
                time.sleep(0.02 if changes else 0)
                if i == 8:
                    break
            out.append(generator.get_state().tolist())
        return out

    assert run(True) == run(False)


def test_an_error_of_the_sampler_comes_after_what_was_read_before(opened):
    class Breaking(Backwards):
        def __iter__(self) -> Any:
            yield from range(50)
            raise KeyError("sampler")

    loader = DataLoader(Squares(), batch_size=None, sampler=Breaking(60))
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=2)
    got = until_effective(live, iterator)
    with pytest.raises(KeyError, match="sampler"):
        got.extend(iterator)
    assert firsts(got) == list(range(50))
    assert next(iterator, None) is None


def test_large_batches_and_a_large_backlog_of_tasks_do_not_block(opened):
    class Wide(Dataset):
        def __len__(self) -> int:
            return 40 * 4000

        def __getitem__(self, index: int) -> int:
            return index

    loader = DataLoader(Wide(), 4000, collate_fn=list)
    live = opened(loader)
    iterator = bound(live, loader)
    live.request(workers=1, prefetch=32)
    got = [i for batch in iterator for i in batch]
    assert got == list(range(40 * 4000))
    assert live.state.fallback_reason is None
