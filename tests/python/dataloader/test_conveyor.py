"""The bookkeeping alone, on a transport that does what each test says."""

from __future__ import annotations

from typing import Any

import pytest

from gpuutil.hooks.dataloader.conveyor import (
    Conveyor,
    Doubt,
    Exhausted,
    NoWorker,
    ReadAhead,
    SamplerFailed,
    TimedOut,
    WorkerLost,
)


class Line:
    """Answers at once with (indices, worker) unless `script` says otherwise."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any, Any]] = []
        self.stopped: list[Any] = []
        self.script: list[list[Any]] = []
        self.mute = False
        self.now = 0.0

    def send(self, worker: Any, key: Any, indices: Any) -> None:
        self.sent.append((worker, key, indices))

    def receive(self, owner: Any, workers: Any, timeout: float) -> list[Any]:
        if not timeout:
            return []
        if self.script:
            return self.script.pop(0)
        if self.mute:
            self.now += timeout
            return []
        return [(w, key, ("data", indices)) for w, key, indices in self.sent]

    def patient(self, worker: Any) -> bool:
        return False

    def stop(self, worker: Any) -> None:
        self.stopped.append(worker)


class Reads:
    """A source that counts how often it was asked."""

    def __init__(self, length: int, fail_at: int | None = None) -> None:
        self.length, self.fail_at, self.count = length, fail_at, 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        self.count += 1
        if self.count - 1 == self.fail_at:
            raise KeyError("sampler")
        if self.count > self.length:
            raise StopIteration
        return self.count - 1


def make(
    source: Any,
    *,
    workers: tuple[str, ...] = ("a", "b"),
    prefetch: int = 2,
    ahead: ReadAhead | None = None,
    **more: Any,
):
    line = Line()
    belt = Conveyor(
        source,
        line,
        ahead or ReadAhead(0, None, 0, 0),
        generation=7,
        prefetch=prefetch,
        clock=lambda: line.now,
        **more,
    )
    for worker in workers:
        belt.add(worker)
    return belt, line


def drain(belt: Conveyor) -> list[Any]:
    out = []
    while True:
        try:
            out.append(belt.take()[0])
        except Exhausted:
            return out


def test_every_batch_comes_once_and_in_the_order_of_the_sampler():
    belt, _ = make(iter(range(50)))
    assert drain(belt) == list(range(50))


def test_answers_in_reverse_order_are_delivered_in_order():
    belt, line = make(iter(range(8)), prefetch=4)
    line.receive = lambda owner, workers, timeout: (  # type: ignore[method-assign]
        [(w, key, indices) for w, key, indices in reversed(line.sent)] if timeout else []
    )
    assert drain(belt) == list(range(8))


def test_undelivered_batches_never_exceed_prefetch_times_active_workers():
    belt, _ = make(iter(range(100)), prefetch=3)
    for _ in range(20):
        belt.take()
        assert len(belt.tasks) == 6
    belt.park("b")
    for _ in range(10):
        belt.take()
    assert len(belt.tasks) == 3


def test_no_index_is_taken_from_the_sampler_while_no_worker_may_have_it():
    source = Reads(10)
    belt, _ = make(source, workers=("a",))
    belt.park("a")
    with pytest.raises(NoWorker):
        belt.take()
    assert source.count == 0 and not belt.tasks


def test_a_second_answer_and_one_of_an_earlier_generation_are_dropped():
    belt, line = make(iter(range(3)), workers=("a",))
    line.script = [[("a", (6, 0), "old"), ("a", (7, 0), "right"), ("a", (7, 0), "again")]]
    assert belt.take()[2] == "right"
    line.script = [[("a", (7, 0), "late again"), ("a", (7, 1), "next")]]
    assert belt.take()[2] == "next"


def test_an_answer_of_a_worker_that_does_not_own_the_task_is_dropped():
    belt, line = make(iter(range(2)))
    line.script = [[("b", (7, 0), "wrong")], [("a", (7, 0), "right")]]
    assert belt.take()[2] == "right"


def test_an_answer_to_a_task_that_was_never_sent_is_a_doubt_and_loses_nothing():
    belt, line = make(iter(range(9)))
    line.script = [[("a", (7, 400), "?")]]
    with pytest.raises(Doubt):
        belt.take()
    assert list(belt.tasks.values()) == [0, 1, 2, 3]


def test_a_retired_worker_gets_no_more_and_is_handed_out_when_it_has_none_left():
    belt, line = make(iter(range(20)))
    line.script = [[("a", (7, 0), 0)]]
    belt.take()
    belt.retire("b")
    assert belt.reap() == []
    sent = len([s for s in line.sent if s[0] == "b"])
    for _ in range(4):
        belt.take()
    assert belt.reap() == ["b"] and line.stopped == ["b"]
    assert len([s for s in line.sent if s[0] == "b"]) == sent
    assert drain(belt) == list(range(5, 20))


def test_the_last_two_reads_wait_until_the_stock_loader_would_make_them():
    source = Reads(6)
    belt, _ = make(source, prefetch=10, ahead=ReadAhead(0, 5, 0, 0))
    for i in range(5):
        assert belt.take()[0] == i
        assert source.count == 5
    assert belt.take()[0] == 5
    assert source.count == 6
    with pytest.raises(Exhausted):
        belt.take()
    assert source.count == 7


def test_a_lowered_depth_still_reads_as_far_ahead_as_the_stock_loader():
    source = Reads(100)
    belt, line = make(source, workers=("a",), prefetch=1, ahead=ReadAhead(8, None, 0, 0))
    for i in range(10):
        belt.take()
        assert source.count == 8 + i + 1
        assert len(line.sent) == i + 2


def test_a_sampler_error_comes_after_everything_that_was_read_before():
    belt, _ = make(Reads(9, fail_at=4), prefetch=8)
    assert [belt.take()[0] for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(SamplerFailed) as caught:
        belt.take()
    assert isinstance(caught.value.error, KeyError)


def test_beside_stock_workers_a_sampler_error_comes_when_the_stock_loader_would_meet_it():
    belt, _ = make(Reads(50, fail_at=10), prefetch=9, ahead=ReadAhead(4, None, 0, 0))
    assert [belt.take()[0] for _ in range(6)] == list(range(6))
    with pytest.raises(SamplerFailed):
        belt.take()
    assert [belt.take()[0] for _ in range(3)] == [7, 8, 9]


def test_a_silent_worker_counts_as_lost_and_its_tasks_are_kept():
    belt, line = make(iter(range(9)))
    line.mute = True
    with pytest.raises(WorkerLost, match="no answer for"):
        belt.take()
    assert 30 <= line.now < 40
    assert list(belt.tasks.values()) == [0, 1, 2, 3]


def test_patience_grows_with_what_a_batch_takes():
    belt, line = make(iter(range(9)), workers=("a",), prefetch=1)
    line.script = [[]]
    line.now = 0.0
    original = line.receive

    def slow(owner: Any, workers: Any, timeout: float) -> list[Any]:
        if timeout:
            line.now += 20
        return original(owner, workers, timeout)

    line.receive = slow  # type: ignore[method-assign]
    belt.take()
    line.mute = True
    before = line.now
    with pytest.raises(WorkerLost):
        belt.take()
    assert line.now - before > 200


def test_the_users_timeout_is_kept():
    belt, line = make(iter(range(9)), timeout=3)
    line.mute = True
    with pytest.raises(TimedOut):
        belt.take()
    assert line.now == pytest.approx(3)


def test_without_order_the_first_answer_goes_first():
    belt, line = make(iter(range(4)), in_order=False)
    line.script = [[("b", (7, 1), "early")]]
    assert belt.take()[2] == "early"
    assert belt.read_ahead.delivered == 1
