"""Whole programs: where the data set lives, how they start processes, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

DATA = """
import os, sys, time
sys.path[:0] = {path!r}
import torch
from torch.utils.data import DataLoader, Dataset
from gpuutil.hooks.dataloader.live import LiveLoader, NotPossible

class Data(Dataset):
    def __len__(self): return {length}
    def __getitem__(self, i):
        time.sleep({seconds})
        return torch.tensor([i, os.getpid()])

def serve(workers=2, settle=20.0, batches=None):
    loader = DataLoader(Data(), 2)
    live = LiveLoader(loader)
    iterator = iter(loader)
    live.bind(iterator)
    got = [next(iterator)]
    live.request(workers=workers)
    end = time.monotonic() + settle
    while time.monotonic() < end and not live.state.effective and not (
        live.state.failures and not live.state.workers_starting
    ):
        got.append(next(iterator))
        time.sleep(0.05)
    for batch in iterator:
        got.append(batch)
        if len(got) == batches:
            break
    pids = {{int(p) for b in got for p in b[:, 1]}} - {{os.getpid()}}
    right = [int(i) for b in got for i in b[:, 0]] == list(range(2 * len(got)))
    return live, len(pids), right
"""


def run(tmp_path, body, *, length=400, seconds=0.002, stdin=False, guard=False, **more):
    """Runs a script (or feeds it to the interpreter like a notebook) and returns the finished
    process."""
    text = DATA.format(path=[p for p in sys.path if p], length=length, seconds=seconds)
    if guard:
        text += "if __name__ == '__main__':\n" + "".join(
            f"    {line}\n" for line in body.splitlines()
        )
    else:
        text += body
    if stdin:
        return subprocess.run(
            [sys.executable, "-"], input=text, capture_output=True, text=True, timeout=120
        )
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, **more
    )


def test_under_fork_an_unguarded_script_with_its_own_data_set_works_and_runs_once(tmp_path):
    done = run(tmp_path, "print('once')\nlive, n, right = serve()\nlive.close()\nprint(n, right)\n")
    assert done.stdout.split() == ["once", "2", "True"], done.stderr
    assert done.stderr == ""


def test_under_fork_a_class_of_the_notebook_works(tmp_path):
    done = run(tmp_path, "live, n, right = serve()\nlive.close()\nprint(n, right)\n", stdin=True)
    assert done.stdout.split() == ["2", "True"], done.stderr


FORKSERVER = "import multiprocessing\nmultiprocessing.set_start_method('forkserver')\n"


def test_under_the_fork_server_a_guarded_script_works(tmp_path):
    body = FORKSERVER + "live, n, right = serve()\nlive.close()\nprint(n, right)\n"
    done = run(tmp_path, body, guard=True, seconds=0.005)
    assert done.stdout.split() == ["2", "True"], done.stderr


@pytest.mark.parametrize("stdin", [False, True])
def test_under_the_fork_server_what_a_child_cannot_import_is_refused_and_nothing_runs_twice(
    tmp_path, stdin
):
    body = (
        FORKSERVER
        + "print('once')\ntry:\n    serve()\nexcept NotPossible as e:\n    print('refused:', e)\n"
    )
    done = run(tmp_path, body, stdin=stdin)
    assert done.stdout.count("once") == 1, done.stderr
    assert "refused: the data set needs the main script" in done.stdout, done.stderr


def test_a_child_that_cannot_unpickle_tells_why_and_training_goes_on(tmp_path):
    (tmp_path / "elsewhere.py").write_text("import torch\n")
    body = FORKSERVER + (
        "import types, elsewhere\n"
        "Data.__module__ = 'elsewhere'; Data.__qualname__ = 'Data'; elsewhere.Data = Data\n"
        "live, n, right = serve()\nlive.close()\nprint(n, right, live.state.failures)\n"
    )
    done = run(
        tmp_path, body, guard=True, seconds=0.005, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout.startswith("0 True") and "cannot be unpickled" in done.stdout, (
        done.stdout + done.stderr
    )


def test_starting_workers_does_not_fix_the_default_start_method(tmp_path):
    body = (
        "import multiprocessing\n"
        "from gpuutil.hooks.dataloader import start_method\n"
        "start_method._default = lambda: 'forkserver'\n"
        "live, n, right = serve()\nlive.close()\n"
        "print(n, right, multiprocessing.get_start_method(allow_none=True))\n"
    )
    done = run(tmp_path, body, guard=True, seconds=0.005)
    assert done.stdout.split() == ["2", "True", "None"], done.stdout + done.stderr


@pytest.mark.parametrize("ending", ["", "sys.exit(3)\n", "raise ValueError('mine')\n"])
def test_the_interpreter_ends_at_once_and_cleanly_with_everything_switched_on(tmp_path, ending):
    body = (
        "live, n, right = serve(batches=60)\nprint(n, right, flush=True)\nprint(time.time())\n"
        + ending
    )
    done = run(tmp_path, body)
    end = time.time()
    lines = done.stdout.splitlines()
    assert lines[0] == "2 True", done.stderr
    assert end - float(lines[1]) < 4
    assert done.returncode == {"": 0, "s": 3, "r": 1}[ending[:1]]
    assert (
        done.stderr == "" if not ending.startswith("raise") else "ValueError: mine" in done.stderr
    )


def test_the_interpreter_ends_in_the_middle_of_a_start(tmp_path):
    body = FORKSERVER + "live, n, right = serve(settle=0.0, batches=3)\nprint(right)\n"
    done = run(tmp_path, body, guard=True)
    assert done.stdout.split() == ["True"] and done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("group", [False, True])
def test_ctrl_c_leaves_no_zombie_and_the_loop_can_go_on(tmp_path, group):
    """`group`: as a terminal sends it, to every process; else as a notebook does, to the trainer
    alone."""
    body = """
loader = DataLoader(Data(), 2)
live = LiveLoader(loader)
iterator = iter(loader); live.bind(iterator)
live.request(workers=2)
got, pressed, said = [], 0, False
while True:
    try:
        if live.state.effective and len(got) > 20 and not said:
            said = True
            print("now", flush=True)
        got.append(next(iterator))
    except StopIteration:
        break
    except KeyboardInterrupt:
        pressed += 1
ids = [int(i) for b in got for i in b[:, 0]]
missing = sorted(set(range(600)) - set(ids))
print(pressed, ids == sorted(set(ids)), len(missing) in (0, 2), live.state.workers_active)
live.request(workers=1)
iterator = iter(loader); live.bind(iterator)
print([int(i) for b in iterator for i in b[:, 0]] == list(range(600)))
live.close()
import multiprocessing
print(multiprocessing.active_children())
"""
    text = DATA.format(path=[p for p in sys.path if p], length=600, seconds=0.01) + body
    script = tmp_path / "script.py"
    script.write_text(text)
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "now\n"
    time.sleep(0.1)
    if group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.splitlines() == ["1 True True 0", "True", "[]"], out + err
    assert err == ""
