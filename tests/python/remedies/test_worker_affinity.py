"""worker_affinity: pinned workers get the trainer's CPUs, batches stay what they were, and every mask comes back."""

from __future__ import annotations

import os
import random
import subprocess
import threading

import loops
import pytest
import torch
from torch.utils.data import DataLoader

import gpuutil
from gpuutil import inherited
from gpuutil.loaders import WatchedLoader
from gpuutil.remedies import worker_affinity
from gpuutil.remedies.base import NotPossible
from gpuutil.remedies.worker_affinity import WorkerAffinity, trainer_cpus

ALL = frozenset(os.sched_getaffinity(0))
ONE = {min(ALL)}

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="one CPU: nothing to widen")


class Subject:
    """What a remedy sees of a loader."""

    id = 1
    restless = False

    def __init__(self, *pids: int) -> None:
        self.pids = list(pids)

    def worker_pids(self) -> list[int]:
        return list(self.pids)


@pytest.fixture
def processes():
    """Two processes that sleep, each on the first CPU."""
    started = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    for process in started:
        os.sched_setaffinity(process.pid, ONE)
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.wait()


def test_workers_narrower_than_the_trainer_are_offered_and_widened_and_given_back(processes):
    remedy, subject = WorkerAffinity(), Subject(*processes)
    offer = remedy.offer(subject, None)
    assert (offer.value, offer.to, offer.exactness, offer.protective) == (0, 1, "exact", False)
    remedy.apply(subject, 1)
    assert all(os.sched_getaffinity(pid) == ALL for pid in processes)
    assert subject.restless
    held = remedy.offer(subject, None)
    assert held.value == held.to == 1
    remedy.apply(subject, 0)
    assert all(os.sched_getaffinity(pid) == ONE for pid in processes)
    assert not subject.restless
    assert remedy.offer(subject, None).value == 0


def test_workers_that_come_while_it_is_in_force_get_it_too_and_their_own_mask_back(processes):
    remedy, subject = WorkerAffinity(), Subject(processes[0])
    remedy.apply(subject, 1)
    subject.pids = processes
    remedy.offer(subject, None)
    assert os.sched_getaffinity(processes[1]) == ALL
    other = {max(ALL)}
    os.sched_setaffinity(processes[1], other)  # it pins itself again
    remedy.offer(subject, None)
    assert os.sched_getaffinity(processes[1]) == ALL
    remedy.restore()
    assert [os.sched_getaffinity(pid) for pid in processes] == [ONE, ONE]


def test_a_mask_that_somebody_else_set_since_stays(processes):
    remedy, subject = WorkerAffinity(), Subject(*processes)
    remedy.apply(subject, 1)
    other = {max(ALL)}
    os.sched_setaffinity(processes[0], other)
    remedy.apply(subject, 0)
    assert os.sched_getaffinity(processes[0]) == other
    assert os.sched_getaffinity(processes[1]) == ONE


def test_workers_with_all_of_the_trainers_cpus_are_no_offer(processes):
    for pid in processes:
        os.sched_setaffinity(pid, ALL)
    assert WorkerAffinity().offer(Subject(*processes), None) is None
    assert WorkerAffinity().offer(Subject(), None) is None


def test_never_wider_than_what_the_process_came_with(processes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inherited, "CPUS", frozenset(ONE))
    assert trainer_cpus() == ONE
    remedy, subject = WorkerAffinity(), Subject(*processes)
    assert remedy.offer(subject, None) is None
    remedy.apply(subject, 1)
    assert all(os.sched_getaffinity(pid) == ONE for pid in processes)
    monkeypatch.setattr(inherited, "CPUS", frozenset())
    with pytest.raises(NotPossible):
        WorkerAffinity().apply(subject, 1)


def test_a_trainer_that_was_narrowed_itself_widens_nobody(processes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_affinity, "_threads", lambda pid: [threading.get_native_id()])
    os.sched_setaffinity(0, ONE)
    try:
        assert trainer_cpus() == ONE
        assert WorkerAffinity().offer(Subject(*processes), None) is None
    finally:
        os.sched_setaffinity(0, ALL)


def test_a_main_thread_bound_to_one_cpu_does_not_hide_what_its_team_has(processes):
    release = threading.Event()
    team = threading.Thread(target=release.wait)
    team.start()  # keeps the whole mask, as an OpenMP team does
    os.sched_setaffinity(threading.main_thread().native_id, ONE)
    try:
        assert trainer_cpus() == ALL
        assert WorkerAffinity().offer(Subject(*processes), None).to == 1
    finally:
        os.sched_setaffinity(threading.main_thread().native_id, ALL)
        release.set()
        team.join()


def test_a_worker_that_ended_or_whose_id_is_another_process_now_is_left_alone(processes):
    remedy, subject = WorkerAffinity(), Subject(*processes, 2**22 + 1)
    remedy.apply(subject, 1)
    widened = remedy._widened[1]
    widened._before = {(pid, "1"): masks for (pid, _), masks in widened._before.items()}  # born at another time
    remedy.apply(subject, 0)
    assert all(os.sched_getaffinity(pid) == ALL for pid in processes)


def test_a_system_that_refuses_leaves_everything_as_it_was(processes, monkeypatch: pytest.MonkeyPatch):
    def refuse(tid, mask):
        raise PermissionError("not permitted")

    remedy, subject = WorkerAffinity(), Subject(*processes)
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(NotPossible, match="not permitted"):
        remedy.apply(subject, 1)
    assert remedy._widened == {} and not subject.restless


# ---- with real loaders


def pin(_worker: int) -> None:
    os.sched_setaffinity(0, ONE)


def _loader(persistent: bool) -> DataLoader:
    return DataLoader(
        loops.Numbers(240, seconds=0.001, draws=True),
        batch_size=4,
        shuffle=True,
        num_workers=2,
        persistent_workers=persistent,
        worker_init_fn=pin,
    )


def _epochs(loader: DataLoader, count: int, each) -> tuple[list, list, object]:
    torch.manual_seed(11)
    random.seed(11)
    batches, states, step = [], [], 0
    model = loops.small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(count):
        iterator = iter(loader)
        for values, indices in iterator:
            optimizer.zero_grad()
            model(values).square().mean().backward()
            optimizer.step()
            batches.append((values.clone(), indices.clone()))
            step += 1
            each(step, iterator)
        states.append((torch.get_rng_state(), random.getstate()))
    return batches, states, torch.cat([p.flatten() for p in model.parameters()]).detach()


def _masks(iterator) -> list[set[int]]:
    return [os.sched_getaffinity(worker.pid) for worker in iterator._workers]


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_generators_and_parameters_are_bit_identical_and_every_pass_has_it(persistent: bool):
    plain = _epochs(_loader(persistent), 3, lambda *_: None)
    seen: dict[str, object] = {}
    loader = _loader(persistent)

    def each(step: int, iterator) -> None:
        if step == 5:
            assert _masks(iterator) == [ONE, ONE]
            seen["answer"] = monitor.apply("worker_affinity")
        if step in (55, 115, 175):
            seen[f"masks {step}"] = _masks(iterator)
        if step == 180 and persistent:
            seen["iterator"] = iterator

    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        changed = _epochs(loader, 3, each)
        rows = monitor.ledger
    assert seen["answer"] == "", seen
    assert [row["remedy"] for row in rows] == ["worker_affinity"]
    assert [seen[f"masks {step}"] for step in (55, 115, 175)] == [[ALL, ALL]] * 3
    assert all(torch.equal(a, b) and torch.equal(i, j) for (a, i), (b, j) in zip(plain[0], changed[0], strict=True))
    assert all(torch.equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(plain[1], changed[1], strict=True))
    assert torch.equal(plain[2], changed[2])
    if persistent:
        assert _masks(seen["iterator"]) == [ONE, ONE]  # after detach


def test_reverting_gives_each_worker_its_mask_back_while_the_loop_runs():
    seen: dict[str, object] = {}
    monitor = gpuutil.attach(apply="observe", log_dir=False)

    def each(step: int, iterator) -> None:
        if step == 10:
            assert monitor.apply("worker_affinity") == ""
        if step == 100:
            seen["held"] = _masks(iterator)
            seen["answer"] = monitor.revert(1)
        if step == 175:
            seen["after"] = _masks(iterator)

    _epochs(_loader(True), 3, each)
    assert seen == {"held": [ALL, ALL], "answer": "", "after": [ONE, ONE]}
    assert monitor.ledger[0]["outcome"] == "reverted"


def test_an_error_of_the_users_in_a_worker_is_the_same_error():
    class Failing(loops.Numbers):
        def __getitem__(self, index: int):
            if index == 120:
                raise LookupError("item 120 is broken")
            return super().__getitem__(index)

    def errors(attached: bool) -> tuple[type, int]:
        loader = DataLoader(Failing(160, seconds=0.001), 4, num_workers=2, worker_init_fn=pin)
        count = 0
        try:
            for count, _ in enumerate(loader):
                if attached and count == 3:
                    monitor.apply("worker_affinity")
        except LookupError as error:
            assert "item 120 is broken" in str(error)
            return type(error), count
        raise AssertionError("no error")

    plain = errors(False)
    with gpuutil.attach(apply="observe", log_dir=False) as monitor:
        assert errors(True) == plain


def test_a_loader_in_force_is_looked_at_until_each_worker_of_a_pass_has_begun():
    loader = DataLoader(range(8), num_workers=1)
    entry = WatchedLoader(loader, 1, changes=False, offers=lambda *_: [])
    assert not entry.unsettled
    entry.restless = True
    assert entry.unsettled
