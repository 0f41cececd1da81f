"""`gpuutil run script.py ...` behaves as `python script.py ...`: arguments, `__main__`, exit code, signals, tracebacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAINING = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.arange(64.).reshape(16, 4)), batch_size=4)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad(); model(x).sum().backward(); optimizer.step()
print("trained", sys.argv[1:], __name__)
"""


def _run(script: Path, *arguments: str, options: tuple[str, ...] = (), **more):
    return subprocess.run(
        [sys.executable, "-m", "gpuutil", "run", *options, str(script), *arguments],
        capture_output=True, text=True, timeout=120, **more,
    )  # fmt: skip


def _plain(script: Path, *arguments: str):
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def test_an_unmodified_script_trains_and_is_reported(script, tmp_path):
    script.write_text(TRAINING)
    done = _run(script, "--lr", "1", options=("--log-dir", str(tmp_path / "logs")))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained ['--lr', '1'] __main__\n"
    assert "epoch" in done.stderr
    assert len((tmp_path / "logs" / "epochs.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "ending", ["import sys; sys.exit(7)", "raise SystemExit('bye')", "import os; os._exit(5)", ""]
)
def test_the_exit_status_is_the_scripts(script, ending):
    script.write_text(f"import torch\n{ending}\n")
    plain, ours = _plain(script), _run(script, options=("--apply", "observe"))
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)


def test_a_traceback_shows_at_most_one_frame_of_ours(script):
    script.write_text("import torch\ndef f():\n    raise KeyError('theirs')\nf()\n")
    plain, ours = _plain(script), _run(script)
    assert ours.returncode == plain.returncode == 1
    assert ours.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1] == "KeyError: 'theirs'"
    frames = [line for line in ours.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) <= 1 + 2 and sum("gpuutil" in line for line in frames) <= 1


def test_an_exception_from_the_dataset_is_the_users_own(script):
    script.write_text(
        "from torch.utils.data import DataLoader, Dataset\n"
        "class D(Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, i):\n"
        "        if i == 5: raise LookupError('item 5')\n"
        "        return i\n"
        "for batch in DataLoader(D(), batch_size=2): print(batch.tolist())\n"
    )
    plain, ours = _plain(script), _run(script)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]
    assert sum("gpuutil" in line for line in ours.stderr.splitlines() if "File " in line) <= 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_it_ends_the_script(script, number):
    script.write_text("import torch, time\nprint('ready', flush=True)\ntime.sleep(60)\n")

    def end(command: list[str]) -> int:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(number)
        return child.wait(60)

    plain = end([sys.executable, str(script)])
    assert end([sys.executable, "-m", "gpuutil", "run", str(script)]) == plain


def test_variables_that_torch_reads_on_import_still_work(script):
    script.write_text(
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n"
    )
    assert _run(script).stdout == _plain(script).stdout == "1\n"


def test_a_script_that_spawns_children_does_not_run_us_in_them(script):
    script.write_text(
        "import sys, multiprocessing as mp\n"
        "import torch\n"
        "def child(q): q.put((__name__, 'gpuutil' in sys.modules))\n"
        "if __name__ == '__main__':\n"
        "    c = mp.get_context('spawn'); q = c.Queue(); p = c.Process(target=child, args=(q,))\n"
        "    p.start(); print(q.get(timeout=60)); p.join()\n"
    )
    done = _run(script)
    assert done.stdout == "('__mp_main__', False)\n", done.stderr


def test_imports_beside_the_script_work(script, tmp_path):
    (tmp_path / "neighbour.py").write_text("value = 41\n")
    script.write_text("import neighbour\nprint(neighbour.value + 1)\n")
    assert _run(script, cwd=os.sep).stdout == "42\n"


def test_a_missing_script_is_one_sentence(tmp_path):
    done = _run(tmp_path / "nowhere.py")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
