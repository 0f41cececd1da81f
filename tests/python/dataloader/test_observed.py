"""What is read of a running iterator: its processes and the size of its batches, also where nothing is changed."""

from __future__ import annotations

import collections
import time

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from gpuutil.hooks.dataloader import observed
from gpuutil.hooks.dataloader.observed import tensor_bytes
from gpuutil.loaders import WatchedLoader


def test_tensors_count_with_their_storages_each_once_and_plain_things_with_nothing():
    whole = torch.zeros(100)
    assert tensor_bytes(whole) == 400
    assert tensor_bytes([whole[:10], whole[50:]]) == 400  # one storage goes over, whole
    Pair = collections.namedtuple("Pair", "a b")
    batch = {"x": whole, "pair": Pair(torch.zeros(10, dtype=torch.float64), 3), "names": ("a", b"b", None, 1.5)}
    assert tensor_bytes(batch) == 400 + 80
    assert tensor_bytes(np.zeros(5)) == 0  # goes through the pipe
    assert tensor_bytes([]) == 0


def test_what_is_not_understood_is_not_guessed():
    class Graph:
        def __init__(self) -> None:
            self.x = torch.zeros(5)

    assert tensor_bytes(Graph()) is None
    assert tensor_bytes([torch.zeros(5), Graph()]) is None
    assert tensor_bytes(torch.zeros(5).to_sparse()) is None
    assert tensor_bytes([1] * 10_000) is None
    loop: list = []
    loop.append(loop)
    assert tensor_bytes(loop) is None


class SlowStart(torch.utils.data.Dataset):
    """The first batch of four comes last."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int):
        if index == 0:
            time.sleep(0.5)
        return torch.zeros(32)


@pytest.mark.parametrize("changes", [False, True])
def test_processes_and_batches_of_a_loader_show_whether_or_not_it_may_be_changed(changes: bool):
    loader = DataLoader(SlowStart(), batch_size=4, num_workers=2)
    entry = WatchedLoader(loader, 1, changes, lambda *_: [])
    iterator = iter(loader)
    entry.bind(iterator)
    facts = entry.facts(loader)
    assert facts["worker_pids"] == [worker.pid for worker in iterator._workers]
    assert facts["batch_bytes"] is None
    next(iterator)  # the second batch was there first, and waits
    assert entry.facts(loader)["batch_bytes"] == 4 * 32 * 4
    assert len(list(iterator)) == 15
    assert entry.facts(loader)["worker_pids"] == []
    if entry.live is not None:
        entry.live.close()


def test_batches_that_wait_out_of_order_show_their_size():
    class Iterator:
        _task_info = {3: (0,), 4: (1, [torch.zeros(10)]), 5: (0, [torch.zeros(20)]), 6: (1, object())}

    assert observed.batch_bytes(Iterator()) == 80
    assert observed.batch_bytes(None) is None
    assert observed.worker_pids(None) == []


def test_a_loader_without_workers_has_no_processes():
    iterator = iter(DataLoader(range(8), batch_size=2))
    assert observed.worker_pids(iterator) == []
    assert observed.batch_bytes(iterator) is None
