"""Workers that are started for every short epoch: found, and kept by one call, with the same batches and draws."""

from __future__ import annotations

import multiprocessing

import loops
import torch
from torch.utils.data import DataLoader

import gpuutil


def _loader(**more) -> DataLoader:
    return DataLoader(loops.Numbers(24, draws=True), batch_size=4, num_workers=2, shuffle=True, **more)


def _train(loader: DataLoader, epochs: int) -> tuple:
    order, losses = loops.train(loader, epochs=epochs, model=_train.model)
    return order, losses, torch.get_rng_state().tolist()


def _seeded() -> None:
    torch.manual_seed(3)
    _train.model = loops.small_model()


def test_the_finding_leads_to_the_remedy_and_the_remedy_to_the_line_of_code():
    _seeded()
    plain = _loader()
    expected = [_train(plain, n) for n in (6, 12)]
    loader = _loader()
    attributes = dict(vars(loader))
    _seeded()
    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        got = [_train(loader, 6)]
        finding = next(f for f in monitor.findings if f["id"] == "worker_restart")
        assert finding["gain_ratio"]["low"] > 0.1 and finding["remedies"] == ["loader_persistent"]
        assert monitor.apply("loader_persistent") == ""
        got.append(_train(loader, 12))
        (row,) = monitor.ledger
        assert row["remedy"] == "loader_persistent" and row["outcome"] == "kept", row
        assert row["class"] == "exact"
        assert "persistent_workers=True" in monitor.recipe()
        assert not [f for f in monitor.findings if f["id"] == "worker_restart"]
        assert multiprocessing.active_children()
        assert loader.persistent_workers is False
    assert got == expected
    assert multiprocessing.active_children() == [] and dict(vars(loader)) == attributes


def test_loaders_that_keep_their_workers_anyhow_have_no_such_finding():
    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        loader = _loader(persistent_workers=True)
        _seeded()
        _train(loader, 8)
        assert not [f for f in monitor.findings if f["id"] == "worker_restart"]
        assert monitor.apply("loader_persistent") != ""
        assert len(multiprocessing.active_children()) == 2
    loader._iterator = None


def test_it_is_taken_back_by_one_call():
    loader = _loader()
    _seeded()
    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        _train(loader, 4)
        assert monitor.apply("loader_persistent", 1) == ""
        _train(loader, 10)
        (row,) = monitor.ledger
        assert row["outcome"] == "kept" and multiprocessing.active_children()
        assert monitor.revert(row["id"]) == ""
        _train(loader, 3)
        assert multiprocessing.active_children() == []
        assert monitor.ledger[0]["outcome"] == "reverted"
