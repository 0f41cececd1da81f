"""Bookkeeping of the batches between a sampler and a consumer. Knows nothing of torch or of
processes.

Owns the undelivered tasks of one iterator: what was read from the sampler, which worker has it,
what came back. One thread calls it. It neither starts nor ends workers and never repairs anything:
on any doubt it raises, and because the indices of every task are kept until its batch was
delivered, the caller can always go on without it.

A signal handler may raise between any two bytecodes. `tasks` is therefore the single truth: a read
from the sampler lands in it within one C call, and a batch leaves it in the last statement before
the return.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Protocol

Key = tuple[int, int]
"""(generation, sequence number). A generation is one iterator's use of the workers."""


class Doubt(Exception):
    """Something that must not happen did. The text says what; the stock path has to take over."""


class WorkerLost(Doubt):
    """A worker died, or has been silent for too long."""


class NoWorker(Exception):
    """The next batch is with no worker and none may take it, or none may be given one to read
    for."""


class Exhausted(Exception):
    """The sampler has ended and everything was delivered."""


class TimedOut(Exception):
    """The user's own limit for one batch has passed."""


class SamplerFailed(Exception):
    """The user's sampler raised `error`, and the stock loader would raise it now."""

    def __init__(self, error: Exception) -> None:
        super().__init__(repr(error))
        self.error = error


class Transport(Protocol):
    """The way to the workers. Workers are opaque, hashable objects."""

    def send(self, worker: Hashable, key: Key, indices: Any) -> None:
        """Queues a task without waiting. Raises WorkerLost."""

    def receive(
        self, owner: Hashable | None, workers: Iterable[Hashable], timeout: float
    ) -> list[tuple[Hashable, Key, Any]]:
        """What came back from any of `workers`; waits at most about `timeout` seconds, for
        `owner`'s sake.

        Raises WorkerLost when one of them is dead.
        """

    def patient(self, worker: Hashable) -> bool:
        """True if the transport itself guards against a silent worker (the stock loader's do)."""

    def stop(self, worker: Hashable) -> None:
        """Asks a worker without tasks to end; does not wait."""


class Member:
    """What the conveyor knows of one worker."""

    __slots__ = ("active", "inflight", "retiring", "since")

    def __init__(self, now: float) -> None:
        self.active = True
        self.retiring = False
        self.inflight = 0
        self.since = now


class ReadAhead:
    """How far the sampler may and must be read, so that the user's generators move as in the stock
    loader.

    Args:
        stock_depth: batches that the user's loader reads ahead: prefetch times workers, 0 without
            workers.
        tail: number of the first read that may draw from a generator of the user's once more (see
            `samplers.py`); from there on reads are made exactly when the stock loader would. None:
            reads have no side effect.
        reads: reads made so far.
        delivered: batches delivered so far.
    """

    def __init__(self, stock_depth: int, tail: int | None, reads: int, delivered: int) -> None:
        self.stock_depth = stock_depth
        self.tail = tail
        self.reads = reads
        self.delivered = delivered

    def stock_reads(self, delivering: bool, asked: bool) -> int:
        """Reads that the stock loader would have made by now.

        Args:
            delivering: one more batch is about to be delivered.
            asked: the consumer waits and nothing is left to deliver: a loader without workers reads
                then.
        """
        return self.stock_depth + self.delivered + (delivering or (asked and not self.stock_depth))


class Conveyor:
    """In-order (or as-they-come) delivery of batches that workers make.

    Args:
        source: iterator over index batches, read from here only.
        transport: the way to the workers.
        read_ahead: rules for reading `source`.
        generation: first part of every key; results with another one are leftovers and dropped.
        prefetch: undelivered batches per active worker.
        in_order: deliver in the sampler's order, else as they arrive.
        first: sequence number of the next batch to be read.
        timeout: the user's limit for one batch in seconds, 0 for none.
        patience: seconds without a sign of life after which a worker counts as lost; grows with
            what batches take.
        watch: wraps each read of an unknown sampler; raises Doubt *after* the read if it drew
            random numbers.
    """

    def __init__(
        self,
        source: Iterator[Any],
        transport: Transport,
        read_ahead: ReadAhead,
        *,
        generation: int,
        prefetch: int,
        in_order: bool = True,
        first: int = 0,
        timeout: float = 0,
        patience: float = 30.0,
        watch: Callable[[Callable[[], None]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.transport = transport
        self.read_ahead = read_ahead
        self.generation = generation
        self.prefetch = prefetch
        self.in_order = in_order
        self.timeout = timeout
        self.tasks: dict[int, Any] = {}
        """Undelivered: sequence number -> indices, in the sampler's order."""
        self.owner: dict[int, Hashable] = {}
        """Undelivered and sent: sequence number -> worker."""
        self.arrived: dict[int, Any] = {}
        self.members: dict[Hashable, Member] = {}
        self.error: Exception | None = None
        self.exhausted = False
        self._error_read = 0
        self._next_read = self.next_out = first
        self.unsent: deque[int] = deque()
        self._patience = patience
        self._longest = 0.0
        self._watch = watch
        self._clock = clock

    # ---- members

    def add(self, worker: Hashable) -> None:
        """Admits a worker that reported ready."""
        self.members.setdefault(worker, Member(self._clock()))

    def park(self, worker: Hashable, parked: bool = True) -> None:
        """No new tasks for a worker, or tasks again. It keeps what it has."""
        self.members[worker].active = not parked

    def retire(self, worker: Hashable) -> None:
        """No new tasks; `reap` hands the worker out once it has none left."""
        member = self.members[worker]
        member.active, member.retiring = False, True

    def reap(self) -> list[Hashable]:
        """Removes and returns the retired workers that hold no task any more, and asks them to
        end."""
        done = [w for w, m in self.members.items() if m.retiring and m.inflight == 0]
        for worker in done:
            del self.members[worker]
            self.transport.stop(worker)
        return done

    def adopt(self, seq: int, worker: Hashable, arrived: bool, data: Any = None) -> None:
        """Takes over a task whose indices nobody kept, in flight at a member or already answered by
        it."""
        self.tasks[seq] = None
        self.owner[seq] = worker
        if arrived:
            self.arrived[seq] = data
        else:
            self.members[worker].inflight += 1
        self._next_read = max(self._next_read, seq + 1)

    def skip_to(self, seq: int) -> None:
        """After `adopt`: the next batch to be read has number `seq`."""
        self._next_read = seq

    @property
    def active(self) -> int:
        return sum(m.active for m in self.members.values())

    @property
    def depth(self) -> int:
        """Undelivered batches that may be under way."""
        return self.prefetch * self.active

    # ---- reading the sampler

    def feed(self, delivering: bool = False, asked: bool = False) -> None:
        """Reads the sampler as far as the depth asks and the rules allow, and sends what was read.

        Args:
            delivering: count as if the batch that is about to be delivered had left already.
            asked: the consumer waits for a batch that was not read yet.
        """
        ahead = self.read_ahead
        limit = ahead.stock_reads(delivering, asked)
        while ahead.stock_depth and ahead.reads < limit and self._read(limit):
            pass  # lowered depth: read on as the stock loader would, send later
        while len(self.owner) - delivering < self.depth:
            worker = self._choose()
            if worker is None or not (self.unsent or self._read(limit)):
                return
            self._send(worker, self.unsent[0])
            self.unsent.popleft()

    def _read(self, limit: int) -> bool:
        ahead = self.read_ahead
        if self.exhausted or self.error is not None:
            return False
        if ahead.tail is not None and ahead.reads >= ahead.tail and ahead.reads >= limit:
            return False
        seq = self._next_read

        def read() -> None:
            # One C call from the sampler's yield into the table: nothing read can be lost to a
            # signal handler.
            self.tasks.update(zip((seq,), itertools.islice(self.source, 1), strict=False))

        ahead.reads += 1
        try:
            if self._watch is None:
                read()
            else:
                self._watch(read)
        except Doubt:
            raise
        except Exception as error:
            self.error, self._error_read = error, ahead.reads
            return False
        if seq not in self.tasks:
            self.exhausted = True
            return False
        self._next_read = seq + 1
        self.unsent.append(seq)
        return True

    def _choose(self) -> Hashable | None:
        """The active worker with the fewest tasks, the longest-serving first."""
        best, least = None, 0
        for worker, member in self.members.items():
            if member.active and (best is None or member.inflight < least):
                best, least = worker, member.inflight
        return best

    def _send(self, worker: Hashable, seq: int) -> None:
        member = self.members[worker]
        if member.inflight == 0:
            member.since = self._clock()
        self.owner[seq] = worker
        member.inflight += 1
        self.transport.send(worker, (self.generation, seq), self.tasks[seq])

    # ---- delivering

    def take(self) -> tuple[Any, Hashable, Any]:
        """The next batch: (indices, worker, data).

        Raises:
            Exhausted, SamplerFailed, NoWorker, TimedOut: nothing is wrong with the conveyor.
            Doubt: see the class. Everything undelivered is in `tasks`.
        """
        self._accept(self.transport.receive(None, self._busy(), 0))
        begin = self._clock()
        while True:
            if not self.tasks:
                self.feed(asked=True)
                if not self.tasks:
                    self._raise_sampler_error()
                    raise Exhausted if self.exhausted else NoWorker
            seq = self._deliverable()
            if seq is not None:
                return self._deliver(seq)
            head = next(iter(self.tasks))
            if head not in self.owner:
                self.feed(asked=True)
                if head not in self.owner:
                    raise NoWorker
            self._wait(self.owner[head], begin)

    def take_unsent(self) -> Any:
        """After NoWorker: the indices of the next batch, which the caller fetches by itself."""
        head = next(iter(self.tasks))
        indices = self.tasks[head]
        self.unsent.remove(head)
        self.next_out = head + 1
        self.read_ahead.delivered += 1
        del self.tasks[head]
        return indices

    def _deliverable(self) -> int | None:
        if not self.arrived:
            return None
        seq = next(iter(self.tasks if self.in_order else self.arrived))
        return seq if seq in self.arrived else None

    def _deliver(self, seq: int) -> tuple[Any, Hashable, Any]:
        if self.in_order and seq != self.next_out:
            raise Doubt(f"sequence gap: batch {seq} where {self.next_out} was due")
        self.feed(delivering=True)
        result = self.tasks[seq], self.owner[seq], self.arrived[seq]
        ahead = self.read_ahead
        ahead.delivered += 1
        self.next_out = seq + 1
        del self.owner[seq], self.arrived[seq]
        del self.tasks[seq]
        if ahead.stock_depth and self._error_read <= ahead.stock_reads(False, False):
            # The stock loader reads on before it hands out, and loses this batch too.
            self._raise_sampler_error()
        return result

    def _raise_sampler_error(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise SamplerFailed(error)

    def _busy(self) -> list[Hashable]:
        return [w for w, m in self.members.items() if m.inflight]

    def _wait(self, owner: Hashable, begin: float) -> None:
        """Waits a slice of time for any answer; every slice checks that waiting on makes sense."""
        slice_seconds = min(1.0, self.timeout) if self.timeout else 1.0
        events = self.transport.receive(owner, self._busy(), slice_seconds)
        now = self._clock()
        for worker, _, _ in events:
            if worker in self.members:
                self._longest = max(self._longest, now - max(begin, self.members[worker].since))
        self._accept(events)
        if self.transport.patient(owner):
            return
        if self.timeout and not events and now - begin >= self.timeout:
            raise TimedOut
        # Only time spent waiting counts: while the trainer was busy elsewhere a full line may have
        # held the worker up.
        silent = now - max(begin, self.members[owner].since)
        if self.members[owner].inflight and silent > max(self._patience, 10 * self._longest):
            raise WorkerLost(f"a worker gave no answer for {silent:.0f} s")

    def _accept(self, events: list[tuple[Hashable, Key, Any]]) -> None:
        for worker, (generation, seq), data in events:
            if generation != self.generation:
                continue
            if seq >= self._next_read:
                raise Doubt(f"answer to batch {seq}, which was never asked for")
            if seq not in self.tasks or seq in self.arrived or self.owner.get(seq) is not worker:
                continue  # a second answer
            self.arrived[seq] = data
            member = self.members[worker]
            member.inflight -= 1
            member.since = self._clock()
