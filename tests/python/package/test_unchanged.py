"""apply="observe" trains bit for bit as without us; and what "auto" changes keeps order, counts and generators."""

from __future__ import annotations

import random
import warnings

import loops
import pytest
import torch
from torch.utils.data import DataLoader

import gpuutil


def _outcome(attach: str | None, **loader_arguments):
    torch.manual_seed(7)
    random.seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
    loader = DataLoader(loops.Numbers(48, draws=True), batch_size=4, shuffle=True, **loader_arguments)
    monitor = gpuutil.attach(model, apply=attach, log_dir=False) if attach else None
    order, losses = loops.train(loader, epochs=3, model=model)
    weights = [p.detach().clone() for p in model.parameters()]
    state = torch.get_rng_state(), random.getstate()
    if monitor is not None:
        monitor.detach()
    return order, losses, weights, state


@pytest.mark.parametrize("workers", [0, 2])
def test_observing_is_bit_identical(workers):
    plain, watched = _outcome(None, num_workers=workers), _outcome("observe", num_workers=workers)
    assert watched[0] == plain[0] and watched[1] == plain[1]
    assert all(torch.equal(a, b) for a, b in zip(watched[2], plain[2], strict=True))
    assert torch.equal(watched[3][0], plain[3][0]) and watched[3][1] == plain[3][1]


def test_schedulers_neither_warn_nor_count_differently():
    model = loops.small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    with warnings.catch_warnings(), gpuutil.attach(model, log_dir=False):
        warnings.simplefilter("error")
        loops.train(
            DataLoader(loops.Numbers(40), batch_size=4),
            model=model,
            optimizer=optimizer,
            each_step=lambda step: scheduler.step(),
        )
    assert scheduler.last_epoch == 10 and optimizer.param_groups[0]["lr"] == pytest.approx(0.025)


def test_a_compiled_model_compiles_as_often_as_without_us():
    def compilations(attach: bool) -> int:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = loops.small_model()
        compiled = torch.compile(model, backend="eager")
        monitor = gpuutil.attach(model, log_dir=False) if attach else None
        loops.train(DataLoader(loops.Numbers(40), batch_size=4), model=compiled)
        if monitor is not None:
            monitor.detach()
        counters = torch._dynamo.utils.counters
        return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

    assert compilations(True) == compilations(False)


def test_a_compiled_optimizer_step_has_no_graph_break_from_us():
    def breaks(attach: bool) -> tuple[int, int]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model = loops.small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        monitor = gpuutil.attach(model, log_dir=False) if attach else None
        step = torch.compile(optimizer.step, backend="eager")
        for _ in range(4):
            model(torch.ones(2, 8)).sum().backward()
            step()
        if monitor is not None:
            monitor.detach()
        counters = torch._dynamo.utils.counters
        return counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())

    assert breaks(True) == breaks(False)
