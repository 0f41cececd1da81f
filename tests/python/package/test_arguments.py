"""A wrong argument is one error that names it; what is wrong with the surroundings is a state with a reason."""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys

import pytest
import torch

import gpuutil


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"model": 3}, TypeError, "model"),
        ({"optimizer": torch.nn.Linear(1, 1)}, TypeError, "optimizer"),
        ({"loader": [1, 2]}, TypeError, "loader"),
        ({"apply": "everything"}, ValueError, "apply"),
        ({"apply": 1}, TypeError, "apply"),
        ({"log_dir": 1.5}, TypeError, "log_dir"),
        ({"config": {"startup_step": 1}}, ValueError, "startup_step"),
        ({"config": {"startup_steps": "many"}}, TypeError, "startup_steps"),
        ({"config": {"period_seconds": 0}}, ValueError, "period_seconds"),
        ({"config": 3}, TypeError, "config"),
    ],
)
def test_a_wrong_argument_is_named_and_attaches_nothing(arguments, error, name):
    with pytest.raises(error, match=name):
        gpuutil.attach(**arguments)
    assert sys.modules["gpuutil.attach"]._current is None


def test_a_wrong_environment_variable_is_named(monkeypatch):
    monkeypatch.setenv("GPUUTIL_APPLY", "max")
    with pytest.raises(ValueError, match="GPUUTIL_APPLY"):
        gpuutil.attach()


def test_disable_makes_everything_a_no_op(monkeypatch):
    monkeypatch.setenv("GPUUTIL_DISABLE", "1")
    before = torch.utils.data.DataLoader.__iter__
    monitor = gpuutil.attach()
    assert not monitor.active and "GPUUTIL_DISABLE" in monitor.idle_reason
    assert torch.utils.data.DataLoader.__iter__ is before
    assert monitor.report() is None and monitor.findings == [] and monitor.ledger == []
    monitor.step()
    monitor.epoch(1)
    monitor.detach()


def test_a_second_attach_is_the_same_monitor():
    first = gpuutil.attach(log_dir=False)
    assert gpuutil.attach(torch.nn.Linear(1, 1), log_dir=False) is first


def test_monitor_methods_name_wrong_arguments():
    monitor = gpuutil.attach(log_dir=False)
    with pytest.raises(TypeError, match="epoch"):
        monitor.report("last")
    with pytest.raises(ValueError, match="remedy_id"):
        monitor.apply("more_speed")
    with pytest.raises(TypeError, match="ledger_id"):
        monitor.revert("1")
    with pytest.raises(TypeError, match="n must"):
        monitor.epoch("1")


def test_an_unwritable_log_folder_is_a_warning_and_nothing_more(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, "gpuutil"):
        monitor = gpuutil.attach(log_dir=tmp_path / "file" / "logs")
    assert monitor.active
    assert "no report files" in caplog.text


def test_the_ceiling_of_the_environment_wins(monkeypatch, caplog):
    monkeypatch.setenv("GPUUTIL_APPLY_MAX", "observe")
    with caplog.at_level(logging.INFO, "gpuutil"):
        gpuutil.attach(apply="all", log_dir=False)
    assert "GPUUTIL_APPLY_MAX" in caplog.text


def _attach_in_child(queue):
    monitor = gpuutil.attach(log_dir=False)
    queue.put((monitor.active, monitor.idle_reason))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_that_trains_may_attach(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_attach_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60)[0] is True
    child.join(30)
    assert child.exitcode == 0


def test_a_spawned_child_that_only_imports_the_script_stays_idle(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing as mp, gpuutil\n"
        "monitor = gpuutil.attach(log_dir=False)\n"
        "def child(q): q.put(monitor.active)\n"
        "if __name__ == '__main__':\n"
        "    c = mp.get_context('spawn'); q = c.Queue(); p = c.Process(target=child, args=(q,)); p.start()\n"
        "    print(monitor.active, q.get(timeout=60)); p.join()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_importing_the_package_touches_neither_torch_nor_the_engine():
    code = "import gpuutil, sys; print('torch' in sys.modules, 'gpuutil._core' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}, check=True
    )
    assert done.stdout.split() == ["False", "False"]
