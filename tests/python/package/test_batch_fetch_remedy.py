"""loader_batch_fetch in a running training, through the public calls."""

from __future__ import annotations

import time

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data._utils.fetch import _MapDatasetFetcher

import gpuutil
from gpuutil.hooks.dataloader.batch_fetch import BatchFetcher

ROWS = 4000


def _loader(**settings) -> DataLoader:
    dataset = TensorDataset(torch.arange(ROWS * 8.0).reshape(ROWS, 8) / ROWS, torch.arange(ROWS))
    return DataLoader(dataset, 64, shuffle=True, **settings)


def _train(loader: DataLoader, epochs: int, each=lambda step, iterator: None) -> list[list[int]]:
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    order, step = [], 0
    torch.manual_seed(5)
    for _ in range(epochs):
        iterator = iter(loader)
        for values, indices in iterator:
            optimizer.zero_grad()
            model(values).square().mean().backward()
            optimizer.step()
            order.append(indices.tolist())
            step += 1
            each(step, iterator)
    return order


def test_asked_for_by_hand_it_is_in_force_in_every_epoch_and_gone_after_detach():
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    loader = _loader()
    answers, kinds = [], []

    def each(step: int, iterator) -> None:
        kinds.append(type(iterator._dataset_fetcher))
        if step == 40:
            answers.append(monitor.apply("loader_batch_fetch"))
        if step == 280:
            answers.append(monitor.apply("loader_batch_fetch"))
        if step == 300:
            monitor.detach()

    order = _train(loader, 6, each)
    assert answers == ["", "loader_batch_fetch is in force already"], answers
    assert BatchFetcher not in kinds[10:40] and BatchFetcher in kinds[40:280]
    assert set(kinds[301:]) == {_MapDatasetFetcher}
    assert order == _train(_loader(), 6)
    row = monitor.ledger[0]
    assert row["remedy"] == "loader_batch_fetch" and row["class"] == "exact"
    assert "BatchSampler" in row["recipe"]


def test_a_revert_gives_torchs_own_fetch_back():
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    kinds = []

    def each(step: int, iterator) -> None:
        kinds.append(type(iterator._dataset_fetcher))
        if step == 40:
            assert monitor.apply("loader_batch_fetch") == ""
        if step == 250:
            assert monitor.revert(1) == ""

    order = _train(_loader(), 6, each)
    assert BatchFetcher in kinds[40:250]
    assert set(kinds[260:]) == {_MapDatasetFetcher}
    assert order == _train(_loader(), 6)


def test_a_loader_that_is_gone_before_its_pass_ends_leaves_no_mark_on_the_iterator():
    monitor = gpuutil.attach(log_dir=False)
    iterator = iter(_loader())  # nobody holds the loader
    for _ in range(3):
        next(iterator)
    monitor.detach()
    assert type(iterator._dataset_fetcher) is _MapDatasetFetcher
    assert set(vars(iterator._dataset_fetcher)) == {"dataset", "auto_collation", "collate_fn", "drop_last"}
    assert len(list(iterator)) == len(iterator) - 3


def test_nothing_is_left_on_the_fetcher_while_batches_are_still_being_timed():
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    loader = _loader()
    iterator = iter(loader)
    next(iterator)
    assert type(iterator._dataset_fetcher) is BatchFetcher
    monitor.detach()
    assert type(iterator._dataset_fetcher) is _MapDatasetFetcher
    assert set(vars(iterator._dataset_fetcher)) == {"dataset", "auto_collation", "collate_fn", "drop_last"}
    assert len(list(iterator)) == len(loader) - 1


def test_rows_read_one_by_one_are_found_and_priced():
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    end = time.monotonic() + 30
    loader = _loader()
    while time.monotonic() < end:
        _train(loader, 4)
        found = [finding for finding in monitor.findings if finding["id"] == "per_row_fetch"]
        if found:
            break
    assert found, monitor.report()
    assert found[0]["remedies"] == ["loader_batch_fetch"]
    assert 0 < found[0]["gain_ratio"]["low"] <= found[0]["gain_ratio"]["high"] < 1


def test_a_loader_with_workers_of_its_own_says_why_not():
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    answers = []

    def each(step: int, iterator) -> None:
        if step == 40:
            answers.append(monitor.apply("loader_batch_fetch"))

    _train(_loader(num_workers=1), 1, each)
    assert answers == ["batches are made in worker processes"]
