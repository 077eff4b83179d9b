"""What is claimed and not started yet: in order within an owner, and owners in turn, however much one of them has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

J = TypeVar("J")


class Lane(NamedTuple):
    """One owner's fires for one host: started in order."""

    owner: str
    host: str


class FairQueue(Generic[J]):
    """Gives out one owner's next, then the other's. Never more at once than `per_owner` of one owner and `per_host` to one host.

    An owner is in the round only while one of its lanes can start something, so that `take` looks at nobody in vain. A host's
    free place is offered to the lane that has waited longest for it, and to the next if that one's owner is at its limit.
    """

    def __init__(self, per_owner: int, per_host: int) -> None:
        self._per_owner = per_owner
        self._per_host = per_host
        self._lanes: dict[Lane, deque[J]] = {}
        self._ready: dict[str, deque[Lane]] = {}  # lanes that can start something, by owner
        self._round: deque[str] = deque()  # owners that have one, and are below their limit
        self._in_round: set[str] = set()
        self._waiting_for: dict[str, deque[Lane]] = {}  # lanes that a host has no room for, by host
        self._offers: dict[str, set[Lane]] = {}  # lanes that waited, and whose host has room for them now, by owner
        self.started_of: dict[str, int] = {}  # by owner
        self.started_to: dict[str, int] = {}  # by host
        self.queued: dict[str, int] = {}  # by owner
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[J]:
        """What was not started yet."""
        return chain.from_iterable(self._lanes.values())

    def put(self, lane: Lane, job: J) -> None:
        self._size += 1
        self.queued[lane.owner] = self.queued.get(lane.owner, 0) + 1
        jobs = self._lanes.get(lane)
        if jobs is not None:
            jobs.append(job)
            return
        self._lanes[lane] = deque([job])
        self._make_ready(lane)

    def take(self) -> tuple[Lane, J] | None:
        """The next to start, which counts as started until `done`; None when nothing can be."""
        while self._round:
            owner = self._round.popleft()
            lanes = self._ready[owner]
            while lanes:
                lane = lanes.popleft()
                if self.started_to.get(lane.host, 0) >= self._per_host:
                    self._wait(lane)
                    continue
                return lane, self._start(lane, lanes)
            self._leave_round(owner)
        return None

    def done(self, lane: Lane) -> None:
        """What was started there is over."""
        _less(self.started_of, lane.owner)
        _less(self.started_to, lane.host)
        self._offer(lane.host)
        if self._ready.get(lane.owner):
            self._enter_round(lane.owner)

    def drain(self) -> list[tuple[Lane, J]]:
        """Everything that was not started, out of the queue."""
        left = [(lane, job) for lane, jobs in self._lanes.items() for job in jobs]
        for table in (self._lanes, self._ready, self._round, self._in_round, self._waiting_for, self._offers, self.queued):
            table.clear()
        self._size = 0
        return left

    def _start(self, lane: Lane, lanes: deque[Lane]) -> J:
        owner, jobs = lane.owner, self._lanes[lane]
        job = jobs.popleft()
        self._size -= 1
        _less(self.queued, owner)
        started = self.started_of[owner] = self.started_of.get(owner, 0) + 1
        self.started_to[lane.host] = self.started_to.get(lane.host, 0) + 1
        self._end_offer(lane)
        if jobs:
            lanes.append(lane)
        else:
            del self._lanes[lane]
        if lanes and started < self._per_owner:
            self._round.append(owner)
        else:
            self._leave_round(owner)
            for passed_on in self._offers.pop(owner, ()):
                self._offer(passed_on.host)
        return job

    def _wait(self, lane: Lane) -> None:
        """Until its host has room; where somebody else took the place that it was offered, at the head."""
        waiting = self._waiting_for.setdefault(lane.host, deque())
        if self._end_offer(lane):
            waiting.appendleft(lane)
        else:
            waiting.append(lane)

    def _offer(self, host: str) -> None:
        """There is room for one more. Lanes of owners at their limit are ready for when they are not."""
        waiting = self._waiting_for.get(host)
        while waiting:
            lane = waiting.popleft()
            self._ready.setdefault(lane.owner, deque()).appendleft(lane)
            if self.started_of.get(lane.owner, 0) < self._per_owner:
                self._enter_round(lane.owner)
                self._offers.setdefault(lane.owner, set()).add(lane)
                break
        if waiting is not None and not waiting:
            del self._waiting_for[host]

    def _end_offer(self, lane: Lane) -> bool:
        """Whether there was an offer for it, which is over."""
        offers = self._offers.get(lane.owner)
        if offers is None or lane not in offers:
            return False
        offers.remove(lane)
        if not offers:
            del self._offers[lane.owner]
        return True

    def _make_ready(self, lane: Lane) -> None:
        self._ready.setdefault(lane.owner, deque()).append(lane)
        self._enter_round(lane.owner)

    def _enter_round(self, owner: str) -> None:
        if owner not in self._in_round and self.started_of.get(owner, 0) < self._per_owner:
            self._in_round.add(owner)
            self._round.append(owner)

    def _leave_round(self, owner: str) -> None:
        self._in_round.discard(owner)
        if not self._ready.get(owner):
            self._ready.pop(owner, None)


def _less(counter: dict[str, int], name: str) -> None:
    left = counter[name] - 1
    if left:
        counter[name] = left
    else:
        del counter[name]
