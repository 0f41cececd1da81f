"""detach() leaves nothing behind: attributes, hooks, threads, processes, descriptors, shared memory, generators."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import random
import threading

import loops
import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_loader

import gpuutil


def _classes() -> dict[str, object]:
    classes = (
        torch_loader.DataLoader,
        torch_loader._BaseDataLoaderIter,
        torch_loader._SingleProcessDataLoaderIter,
        torch_loader._MultiProcessingDataLoaderIter,
        torch.optim.Optimizer,
        torch.optim.SGD,
        torch.nn.Module,
        torch.Tensor,
    )
    return {f"{c.__qualname__}.{name}": value for c in classes for name, value in vars(c).items()}


def _surroundings() -> dict[str, object]:
    gc.collect()
    logger = logging.getLogger("gpuutil")
    return {
        "pre hooks": list(optimizers._global_optimizer_pre_hooks),
        "post hooks": list(optimizers._global_optimizer_post_hooks),
        "threads": sorted(t.name for t in threading.enumerate()),
        "native threads": len(os.listdir("/proc/self/task")),
        "children": len(multiprocessing.active_children()),
        "shm": sorted(n for n in os.listdir("/dev/shm") if str(os.getpid()) in n),
        "level": logger.level,
        "handlers": list(logger.handlers),
        "torch threads": torch.get_num_threads(),
    }


def _generators() -> tuple:
    return torch.get_rng_state().tolist(), random.getstate()


def _assert_nothing_left(before: dict, classes: dict) -> None:
    after_classes = _classes()
    assert [k for k in classes if after_classes.get(k) is not classes[k]] == []
    assert set(after_classes) == set(classes)
    after = _surroundings()
    # torch's own pool lets threads go when it was made smaller meanwhile, and makes them anew when it needs them.
    assert after.pop("native threads") <= before["native threads"]
    assert {k: (before[k], v) for k, v in after.items() if before[k] != v} == {}


def test_nothing_is_left_after_an_idle_attachment():
    torch.rand(1)
    before, classes, generators = _surroundings(), _classes(), _generators()
    monitor = gpuutil.attach()
    assert _surroundings() != before
    monitor.detach()
    _assert_nothing_left(before, classes)
    assert _generators() == generators


def test_nothing_is_left_after_training_with_live_workers():
    loader = DataLoader(loops.Numbers(120, seconds=0.004), batch_size=4)
    model = loops.small_model()
    loops.train(loader, model=model)  # torch's own lazy things exist before the comparison
    before, classes = _surroundings(), _classes()
    attributes = set(vars(loader)), set(vars(model))
    with gpuutil.attach(model) as monitor:
        loops.train(loader, epochs=1, model=model)
        assert monitor.apply("loader_workers", 2) == ""
        loops.train(loader, epochs=2, model=model)
        assert multiprocessing.active_children()
    _assert_nothing_left(before, classes)
    assert (set(vars(loader)), set(vars(model))) == attributes
    assert loader.num_workers == 0 and loader._iterator is None


def test_detach_in_the_middle_of_an_epoch_hands_the_iterator_back():
    loader = DataLoader(loops.Numbers(40), batch_size=4)
    monitor = gpuutil.attach(log_dir=False)
    iterator = iter(loader)
    first = [next(iterator)[1].tolist() for _ in range(3)]
    monitor.detach()
    rest = [batch[1].tolist() for batch in iterator]
    assert first + rest == [list(range(i, i + 4)) for i in range(0, 40, 4)]
    assert type(iterator) is torch_loader._SingleProcessDataLoaderIter
    assert "_gpuutil_source" not in vars(iterator)


def test_a_patch_on_top_of_ours_stays_and_is_named(caplog):
    original = DataLoader.__iter__
    monitor = gpuutil.attach(log_dir=False)
    ours = DataLoader.__iter__

    def theirs(self):
        return ours(self)

    try:
        DataLoader.__iter__ = theirs
        monitor.detach()
        assert DataLoader.__iter__ is theirs
        assert "DataLoader.__iter__" in caplog.text
        assert sum(1 for _ in DataLoader(loops.Numbers(8), batch_size=4)) == 2
    finally:
        DataLoader.__iter__ = original


def test_attaching_again_and_again_stays_flat():
    loader = DataLoader(loops.Numbers(16), batch_size=4)

    def once() -> None:
        with gpuutil.attach(log_dir=False):
            loops.train(loader)

    for _ in range(3):
        once()
    before, descriptors = _surroundings(), len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        once()
    assert _surroundings() == before
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_running_the_training_cell_again_without_detaching_stays_flat():
    loader = DataLoader(loops.Numbers(16), batch_size=4)
    for _ in range(2):
        gpuutil.attach(loops.small_model(), apply="observe", log_dir=False)
        loops.train(loader)
    before = _surroundings()
    for _ in range(10):
        gpuutil.attach(loops.small_model(), apply="observe", log_dir=False)
        loops.train(loader)
    assert _surroundings() == before
