"""Family 6: CPUs, threads and neighbours; and the evaluation batch, which a CPU shows as well."""

from __future__ import annotations

from .entry import Edit, Truth

RESOURCES = (
    Truth(
        "whitened_spectra",
        casebook="6-01, 6-02",
        why="each worker computes on four threads",
        finds=("worker_threads",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("worker_threads",),
        fix=(Edit("threadpool_limits(4)", "threadpool_limits(1)"),),
    ),
    Truth(
        "street_photos",
        casebook="6-04",
        why="the trainer's own threads compete with the workers for two CPUs",
        finds=("main_threads",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("main_threads", "loader_workers"),
        fix=(Edit("    run = Run()\n", "    torch.set_num_threads(1)\n    run = Run()\n"),),
    ),
    Truth(
        "flowers",
        casebook="6-06",
        why="all workers are bound to one CPU",
        finds=("affinity_mask",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("worker_affinity",),
        fix=(Edit("        worker_init_fn=start,\n", ""),),
    ),
    Truth(
        "lesions",
        casebook="6-07",
        why="four workers and the trainer were given one CPU",
        finds=("affinity_mask", "too_few_cpus", "cpu_quota"),
        never=("input_latency_bound", "small_file_reads", "worker_restart"),
        cpus=1,
    ),
    Truth(
        "market_photos",
        casebook="6-13",
        why="other processes keep the CPUs busy",
        finds=("foreign_cpu_load",),
        never=("input_latency_bound", "worker_restart"),
        neighbours=2,
    ),
    Truth(
        "animals",
        casebook="T-14",
        why="sixteen workers on a few CPUs whose work computes",
        finds=("too_few_cpus", "input_cpu_bound"),
        never=("input_latency_bound", "worker_restart"),
        remedies=("loader_workers",),
        fix=(Edit("num_workers=16", "num_workers=2"),),
    ),
    Truth(
        "held_back_digits",
        casebook="1-10",
        why="the evaluation loader hands out one sample at a time",
        finds=("eval_batch_small",),
        never=("input_latency_bound", "input_single_process", "input_cpu_bound"),
        fix=(Edit("DataLoader(held, batch_size=1)", "DataLoader(held, batch_size=128)"),),
        fix_is_live=False,
        quick=("--epochs", "2", "--items", "256"),
    ),
)
