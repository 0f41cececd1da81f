"""Which torch is touched at all."""

from __future__ import annotations

import json
import stat

import pytest
import torch
from torch.utils.data import DataLoader, dataloader

from gpuutil.hooks.dataloader import capability
from gpuutil.hooks.dataloader.live import LiveLoader


@pytest.fixture
def unknown(monkeypatch, tmp_path):
    """A torch whose code nobody has seen."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(capability, "_KNOWN", set())
    monkeypatch.setattr(capability, "_KNOWN_FILES", set())
    capability._answer.cache_clear()
    yield tmp_path / "gpuutil"
    capability._answer.cache_clear()


def test_the_torch_under_test_is_either_known_or_passes_the_rehearsal():
    assert capability.single_problem() is None
    assert capability.multi_problem() is None


def test_a_tested_torch_is_known_by_its_files_and_not_once_a_method_is_another(monkeypatch):
    tested = torch.__version__.startswith(("2.13.0", "2.14.1"))
    assert (capability._files() in capability._KNOWN_FILES) == tested
    monkeypatch.setattr(dataloader._SingleProcessDataLoaderIter, "_next_data", lambda self: None)
    assert capability._files() is None


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_the_rehearsal_passes_and_moves_no_generator(kind):
    before = torch.get_rng_state().tolist()
    assert capability.rehearse(kind) is None
    assert torch.get_rng_state().tolist() == before


def test_an_unknown_torch_is_rehearsed_once_and_the_answer_kept(unknown, monkeypatch):
    assert capability.single_problem() is None
    file = unknown / "dataloader_single.json"
    assert json.loads(file.read_text())["problem"] is None
    assert (
        stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(unknown.stat().st_mode) == 0o700
    )
    monkeypatch.setattr(capability, "rehearse", lambda kind: pytest.fail("rehearsed twice"))
    capability._answer.cache_clear()
    assert capability.single_problem() is None


def test_a_torch_that_fails_the_rehearsal_is_left_alone_with_a_reason(unknown, monkeypatch):
    def next_data(self):
        return self._dataset_fetcher.fetch(self.indices())  # another way to the sampler

    monkeypatch.setattr(
        dataloader._BaseDataLoaderIter, "indices", lambda self: next(self.upcoming), raising=False
    )
    original = dataloader._SingleProcessDataLoaderIter.__init__

    def init(self, loader):
        original(self, loader)
        self.upcoming = self.__dict__.pop("_sampler_iter")
        self.__dict__["_sampler_iter"] = ()

    monkeypatch.setattr(dataloader._SingleProcessDataLoaderIter, "__init__", init)
    monkeypatch.setattr(dataloader._SingleProcessDataLoaderIter, "_next_data", next_data)
    loader = DataLoader(range(6), 2)
    live = LiveLoader(loader)
    iterator = iter(loader)
    assert "rehearsal" in live.supported(iterator)
    live.bind(iterator)
    assert type(iterator) is dataloader._SingleProcessDataLoaderIter
    assert [b.tolist() for b in iterator] == [[0, 1], [2, 3], [4, 5]]


def test_another_worker_loop_is_refused(unknown, monkeypatch):
    monkeypatch.setattr(capability._utils.worker, "_worker_loop", lambda dataset, queue: None)
    assert "another worker loop" in capability.multi_problem()


def test_an_unwritable_cache_folder_is_no_obstacle(unknown, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert capability.single_problem() is None
