"""Changes in a running training, through the public calls: applied, measured, reverted, replayed, interrupted."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import loops
import pytest
import torch
from torch.utils.data import DataLoader

import gpuutil

LOOPS = str(Path(__file__).resolve().parents[1])


def _wait(condition, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def _children() -> list[int]:
    return [child.pid for child in multiprocessing.active_children()]


def _slow_loader(length: int = 400) -> DataLoader:
    return DataLoader(loops.Numbers(length, seconds=0.003), batch_size=4, shuffle=True)


def _expected(length: int, epochs: int, seed: int) -> list[list[int]]:
    torch.manual_seed(seed)
    order = []
    for _ in range(epochs):
        order += [batch[1].tolist() for batch in DataLoader(loops.Numbers(length), 4, shuffle=True)]
    return order


def _order(loader: DataLoader, epochs: int, seed: int, each) -> list[list[int]]:
    """Trains with the generator seeded after the model was made, so that only the loader draws."""
    model = loops.small_model()
    torch.manual_seed(seed)
    return loops.train(loader, epochs, model=model, each_step=each)[0]


def test_a_remedy_asked_for_by_hand_is_applied_measured_and_reverted():
    loader = _slow_loader()
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    seen: dict[str, object] = {}

    def each(step: int) -> None:
        if step == 40:
            seen["answer"] = monitor.apply("loader_workers", 2)
        if step == 190:
            seen["rows"] = monitor.ledger
            seen["workers"] = len(_children())
        if step == 200:
            seen["reverting"] = monitor.revert(1)

    order = _order(loader, 4, 3, each)
    assert seen["answer"] == "", seen
    assert seen["workers"] > 0
    assert [row["remedy"] for row in seen["rows"]] == ["loader_workers + loader_prefetch"]
    assert seen["reverting"] == ""
    assert order == _expected(400, 4, seed=3)
    assert _wait(lambda: not _children())
    assert monitor.ledger[0]["outcome"] == "reverted"
    assert loader.num_workers == 0


def test_asking_from_another_thread_touches_nothing_until_the_loader_is_fetched_from():
    loader = _slow_loader()
    monitor = gpuutil.attach(apply="observe", log_dir=False)
    iterator, model = iter(loader), loops.small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        values, _ = next(iterator)
        optimizer.zero_grad()
        model(values).square().mean().backward()
        optimizer.step()

    for _ in range(40):
        step()
    stock, answers = type(iterator), []
    asking = threading.Thread(target=lambda: answers.append(monitor.apply("loader_workers", 2)))
    asking.start()
    asking.join()
    time.sleep(0.3)  # the engine's thread has seen it by now
    assert answers == [""]
    assert type(iterator) is stock
    for _ in range(50):
        step()
    assert len(_children()) == 2


@pytest.mark.parametrize("known", [True, False], ids=["known torch", "unknown torch"])
def test_only_the_users_epochs_are_seen_in_the_first_run_on_a_machine(tmp_path, known):
    """Whatever gpuutil tries out on loaders of its own is over before it looks."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import json
        import sys
        sys.path.insert(0, {LOOPS!r})
        import loops
        import gpuutil
        from gpuutil.hooks.dataloader import capability
        from torch.utils.data import DataLoader

        if not {known}:
            capability._KNOWN, capability._KNOWN_FILES = set(), set()
        else:
            capability.rehearse = None
        monitor = gpuutil.attach(log_dir=False)
        loops.train(DataLoader(loops.Numbers(200), batch_size=4), epochs=3)
        monitor.detach()
        epochs = [json.loads(values) for _, _, values in monitor._session.read().epochs]
        print([(epoch["epoch"], epoch["steps"]) for epoch in epochs if epoch["steps"]])
        print(capability.single_problem(), capability.multi_problem())
        """)
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines() == ["[(1, 50), (2, 50), (3, 50)]", "None None"], done.stderr
    assert (tmp_path / "cache").exists() != known


def test_a_file_named_stop_takes_everything_back(tmp_path):
    loader = _slow_loader()
    monitor = gpuutil.attach(log_dir=tmp_path / "logs")

    def each(step: int) -> None:
        if step == 40:
            monitor.apply("loader_workers", 2)
        if step == 120:
            (tmp_path / "logs" / "STOP").write_text("")
            time.sleep(1.2)

    loops.train(loader, epochs=3, each_step=each)
    assert not any(row["outcome"] in ("kept", "running") for row in monitor.ledger)
    assert _wait(lambda: not _children())


def test_the_kept_changes_of_a_report_are_replayed_at_the_first_step(tmp_path):
    report = tmp_path / "report.json"
    change = {"remedy": "loader_workers", "subject": 1, "from": 0, "to": 2}
    report.write_text(json.dumps({"ledger": [{"outcome": "kept", "changes": [change]}]}))
    monitor = gpuutil.attach(replay=report, log_dir=False)
    counts = []
    order = _order(_slow_loader(120), 2, 5, lambda step: counts.append(len(_children())))
    assert counts[-1] == 2
    assert [row["outcome"] for row in monitor.ledger] == ["kept"]
    assert order == _expected(120, 2, seed=5)


def test_a_replay_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match="replay"):
        gpuutil.attach(replay=tmp_path / "nothing.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="replay"):
        gpuutil.attach(replay=tmp_path / "other.json")


def test_a_killed_worker_of_ours_never_fails_the_training():
    monitor = gpuutil.attach(log_dir=False)
    killed = []

    def each(step: int) -> None:
        if step == 40:
            monitor.apply("loader_workers", 2)
        if step > 60 and _children() and not killed:
            os.kill(_children()[0], signal.SIGKILL)
            killed.append(step)

    order = _order(_slow_loader(), 2, 11, each)
    assert killed
    assert order == _expected(400, 2, seed=11)
    assert monitor.active


SCRIPT = """
import os, signal, sys, threading, time
sys.path.insert(0, {loops!r})
import loops, torch, gpuutil
from torch.utils.data import DataLoader
monitor = gpuutil.attach(log_dir="logs")
loader = DataLoader(loops.Numbers(200, seconds=0.003), batch_size=4)
"""


def _script(tmp_path: Path, body: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(loops=LOOPS) + textwrap.dedent(body))
    return subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=timeout
    )


def test_after_kill_9_the_last_epoch_is_on_disk(tmp_path):
    done = _script(
        tmp_path,
        """
        def each(step):
            if step == 120:  # in the middle of epoch 3
                os.kill(os.getpid(), signal.SIGKILL)
        loops.train(loader, epochs=5, each_step=each)
        """,
    )
    assert done.returncode == -signal.SIGKILL
    lines = (tmp_path / "logs" / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]
    assert json.loads((tmp_path / "logs" / "report.json").read_text())["schema_version"] == 1


@pytest.mark.parametrize("when", [60, 61, 63, 66])
def test_ctrl_c_around_a_start_of_workers_leaves_no_zombie_and_the_next_run_works(tmp_path, when):
    done = _script(
        tmp_path,
        f"""
        def each(step):
            if step == 55:
                monitor.apply("loader_workers", 2)
            if step == {when}:
                threading.Timer(0.004, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            loops.train(loader, epochs=3, each_step=each)
            print("no interrupt")
        except KeyboardInterrupt:
            print("interrupted")
        order, _ = loops.train(loader)
        print(order == [list(range(i, i + 4)) for i in range(0, 200, 4)])
        monitor.detach()
        import multiprocessing
        time.sleep(0.3)
        print(len(multiprocessing.active_children()))
        """,
    )
    assert done.stdout.split("\n")[:3] == ["interrupted", "True", "0"], done.stdout + done.stderr
    # A worker whose tensor was being fetched right then may complain, as it does in a stock loader; we may not.
    frames = [line for line in done.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert not [line for line in frames if "gpuutil" in line or "/hooks/" in line], done.stderr


def test_interpreter_exit_with_live_workers_is_clean_and_prompt(tmp_path):
    begin = time.monotonic()
    done = _script(
        tmp_path,
        """
        def each(step):
            if step == 40:
                monitor.apply("loader_workers", 2)
            if step == 90:
                sys.exit(3)
        loops.train(loader, epochs=3, each_step=each)
        """,
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    assert time.monotonic() - begin < 30


def test_an_unguarded_script_and_a_class_of_main_work_under_fork(tmp_path):
    done = _script(
        tmp_path,
        """
        class Mine(loops.Numbers):
            pass
        loader = DataLoader(Mine(200, seconds=0.003), batch_size=4)
        most = []
        def each(step):
            if step == 40:
                monitor.apply("loader_workers", 2)
            most.append(len(monitor._session._loaders.by_id(1).live.state.worker_pids))
        order, _ = loops.train(loader, epochs=3, each_step=each)
        print(max(most) > 0, len(order))
        """,
    )
    assert done.stdout.split() == ["True", "150"], done.stderr


def test_a_script_whose_loader_is_iterable_is_told_why_nothing_changes():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            for index in range(400):
                time.sleep(0.002)
                yield torch.full((8,), float(index)), index

    monitor = gpuutil.attach(log_dir=False)
    loops.train(DataLoader(Stream(), batch_size=4), epochs=2)
    assert not any(row["outcome"] in ("kept", "running") for row in monitor.ledger)
    monitor.apply("loader_workers", 2)
    loops.train(DataLoader(Stream(), batch_size=4), epochs=1)
    assert _children() == []
