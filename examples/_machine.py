"""CPU time of one process tree and of everybody else, read from /proc.

What cannot be read is None, never 0. Used by the parent and by the arms of the examples.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def usable_cpus() -> float:
    """CPUs that this process may use: its affinity mask, and no more than its cgroups' quota."""
    cpus = float(len(os.sched_getaffinity(0)))
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return cpus
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup") / ("cpu" if controllers else "")
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            cpus = min(cpus, _quota(group))
            if group == root:
                break
    return cpus


def _quota(group: Path) -> float:
    """CPUs that the quota of one cgroup (v2, else v1) allows; infinity where it sets none."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        except OSError:
            return math.inf
    try:
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except ValueError:  # v2 writes "max" for no limit
        return math.inf


def tree_cpu_seconds(pid: int) -> float | None:
    """CPU seconds of a process, its living descendants, and all of their children that were reaped.

    Both readings of a difference must see the same tree: a child that ended in between counts
    once its parent has waited for it.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name is in brackets and may hold anything: the fields begin after the last one.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    if pid not in ticks:
        return None

    def belongs(process: int) -> bool:
        while process != pid and process in parents:
            process = parents[process]
        return process == pid

    return sum(used for process, used in ticks.items() if belongs(process)) * _TICK_SECONDS


def busy_cpu_seconds() -> float | None:
    """CPU seconds that anybody used, since boot, on the CPUs this process may run on.

    Time that a hypervisor took away (steal) counts: it too was not there for us.
    """
    mine = os.sched_getaffinity(0)
    busy = 0
    try:
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name.startswith("cpu") and name != "cpu" and int(name[3:]) in mine:
                user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
                busy += user + nice + system + irq + softirq + steal
    except (OSError, ValueError):
        return None
    return busy * _TICK_SECONDS if busy else None
