"""What gpuutil costs a whole training that has nothing to fix: a step of half a millisecond on the CPU.

    python tests/bench/end_to_end.py [--quick]

One process, `apply="observe"`: blocks of at least 400 steps (so that sampled steps are inside) with and without,
in random order within a pair; plain against plain is the control. Process figures come from fresh processes.
Keys: added_us_block_p10, added_us_block_median, added_ratio_block_median (paired block means, wall time),
process_cpu_ratio, aa_ratio, import_ms (beyond torch), attach_ms, extra_threads, extra_processes, extra_rss_mb.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time

from _measure import finish, median, quantile, say

PROBE = """
import json, os, sys, time
import torch, torch.utils.data
def rss():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
def threads(): return len(os.listdir("/proc/self/task"))
def children():
    total = 0
    for task in os.listdir("/proc/self/task"):
        total += len(open(f"/proc/self/task/{task}/children").read().split())
    return total
model = torch.nn.Linear(8, 8); opt = torch.optim.SGD(model.parameters(), lr=.1)
def train():
    for _ in range(300): model(torch.ones(4, 8)).sum().backward(); opt.step()
train()  # whatever training itself needs is there before the comparison
a = rss(), threads(), children()
t0 = time.perf_counter(); import gpuutil; t1 = time.perf_counter()
monitor = gpuutil.attach(apply="observe", log_dir=False); t2 = time.perf_counter()
train()
time.sleep(1.2)
b = rss(), threads(), children()
print(json.dumps({"import_ms": (t1 - t0) * 1e3, "attach_ms": (t2 - t1) * 1e3, "extra_rss_mb": b[0] - a[0],
                  "extra_threads": b[1] - a[1], "extra_processes": b[2] - a[2]}))
"""


def probe() -> dict[str, float]:
    """Import, attach, memory, threads and processes of one fresh process."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Training:
    """Half a millisecond a step: forward, backward, optimizer, a fetch of a ready batch."""

    def __init__(self) -> None:
        import torch
        from torch.utils.data import DataLoader

        torch.manual_seed(0)
        torch.set_num_threads(1)
        layers = [torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.batches = torch.rand(20, 32, 64)
        self.make = lambda steps: DataLoader(
            [self.batches[i % 20] for i in range(steps)], batch_size=None
        )

    def block(self, steps: int) -> tuple[float, float]:
        """(wall, process CPU) microseconds a step."""
        iterator = iter(self.make(steps + 1))
        next(iterator)
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for batch in iterator:
            self.optimizer.zero_grad()
            self.model(batch).square().mean().backward()
            self.optimizer.step()
        return (
            (time.perf_counter_ns() - wall) / steps / 1e3,
            (time.process_time_ns() - cpu) / steps / 1e3,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few blocks: shows that it works")
    quick = parser.parse_args().quick
    probes = [probe() for _ in range(1 if quick else 5)]
    figures = {key: round(median([p[key] for p in probes]), 2) for key in probes[0]}
    say(f"process: {figures}")

    import gpuutil

    pairs, steps = (4, 400) if quick else (60, 800)
    training, order = Training(), random.Random(3)
    for _ in range(3):
        training.block(steps)

    added, ratios, cpu_ratios, control = [], [], [], []
    for pair in range(pairs):
        results: dict[str, tuple[float, float]] = {}
        for arm in order.sample(["plain", "again", "gpuutil"], 3):
            if arm == "gpuutil":
                # The start-up phase (operators sampled one step in two) is over before the block.
                with gpuutil.attach(apply="observe", log_dir=False) as monitor:
                    training.block(120)
                    monitor.report()
                    results[arm] = training.block(steps)
            else:
                training.block(120)
                results[arm] = training.block(steps)
        base = (results["plain"][0] + results["again"][0]) / 2
        base_cpu = (results["plain"][1] + results["again"][1]) / 2
        added.append(results["gpuutil"][0] - base)
        ratios.append(results["gpuutil"][0] / base - 1)
        cpu_ratios.append(results["gpuutil"][1] / base_cpu)
        control.append(results["again"][0] / results["plain"][0])
        if pair % 10 == 0:
            say(f"pair {pair}: base {base:.0f} us, added {added[-1]:+.1f} us a step")
    finish(
        {
            "added_us_block_p10": round(quantile(added, 0.1), 2),
            "added_us_block_median": round(median(added), 2),
            "added_ratio_block_median": round(median(ratios), 5),
            "process_cpu_ratio": round(median(cpu_ratios), 4),
            "aa_ratio": round(median(control), 4),
            **figures,
            "pairs": pairs,
            "steps": steps,
            "pid_cpus": len(os.sched_getaffinity(0)),
        }
    )


if __name__ == "__main__":
    main()
