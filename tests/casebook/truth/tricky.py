"""Cases in which the obvious reading is wrong."""

from __future__ import annotations

from .entry import Edit, Truth

TRICKY = (
    Truth(
        "satellite_tiles",
        casebook="T-01",
        why="looks like a slow file system; the files are tiny, and the workers share one CPU",
        finds=("affinity_mask", "too_few_cpus", "cpu_quota"),
        never=("input_latency_bound", "small_file_reads", "storage_read_amplification"),
        cpus=1,
    ),
    Truth(
        "ranking",
        casebook="T-02",
        why="the loader is blamed; a metric in Python loops over samples and classes",
        finds=("host_python",),
        never=("input_latency_bound", "input_cpu_bound", "input_single_process", "per_row_fetch"),
        fix=(
            Edit(
                "    found = 0\n"
                "    for row, target in zip(scores.tolist(), targets.tolist()):\n"
                "        best = sorted(range(len(row)), key=lambda number: -row[number])\n"
                "        found += target in best[:count]\n"
                "    return found / len(targets)\n",
                "    best = scores.topk(count).indices\n"
                "    return (best == targets[:, None]).any(1).float().mean().item()\n",
            ),
        ),
        fix_is_live=False,
        quick=("--epochs", "1", "--items", "1280"),
    ),
    Truth(
        "curriculum_tones",
        casebook="T-09",
        why="workers start anew in each epoch, but kept ones would never hear of the next epoch",
        finds=("worker_restart",),
        never=("input_latency_bound", "small_file_reads"),
        refused=("loader_persistent",),
        quick=("--epochs", "4", "--items", "32"),
    ),
    Truth(
        "archive_photos",
        casebook="T-19",
        why="reading from one packed archive is cheap; decoding and augmenting is not",
        finds=("input_cpu_bound", "too_few_cpus"),
        never=("input_latency_bound", "small_file_reads", "storage_read_amplification"),
        refused=("loader_cache", "loader_materialise"),
        quick=("--epochs", "1", "--items", "64"),
    ),
    Truth(
        "ocr_lines",
        casebook="T-22",
        why="one thread is safe, not best: the trainer is alone, and its work is large",
        finds=("main_threads",),
        never=("input_latency_bound", "input_cpu_bound", "input_single_process"),
        remedies=("main_threads",),
        fix=(Edit("    torch.set_num_threads(1)\n", ""),),
        quick=("--epochs", "1", "--items", "256"),
    ),
    Truth(
        "remote_cards",
        casebook="T-25",
        why="one CPU does not bound workers that wait for a server",
        finds=("input_latency_bound",),
        never=("too_few_cpus", "affinity_mask", "cpu_quota", "input_cpu_bound"),
        remedies=("loader_workers", "loader_prefetch"),
        fix=(Edit("num_workers=1)", "num_workers=8, persistent_workers=True)"),),
        cpus=1,
    ),
)
