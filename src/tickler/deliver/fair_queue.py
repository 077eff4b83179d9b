"""A queue of claimed fires that starts one owner's after another's, so that one owner's flood does not hold up the others."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

J = TypeVar("J")


class Lane(NamedTuple):
    """One owner's fires for one host, started in order."""

    owner: str
    host: str


class SlotLimit(NamedTuple):
    """The most attempts at once. The last `reserved` slots are for owners that have nothing in flight."""

    total: int
    reserved: int = 0

    @property
    def shared(self) -> int:
        return self.total - self.reserved


class _Waiting(NamedTuple):
    """Lanes that wait for one host, in order, and those of them whose owner has nothing in flight."""

    lanes: OrderedDict[Lane, None]
    idle: OrderedDict[Lane, None]


class FairQueue(Generic[J]):
    """Serves owners round-robin within three limits: on all attempts, on those of one owner, and on those to one host.

    An owner that has nothing in flight is *idle*. Only idle owners get reserved slots, so hanging attempts of others cannot hold
    them up. An owner is in the round only while one of its lanes can start something, so `take` never searches in vain. A host's
    free slot is offered to the lane that has waited longest for it, or to the next if the owner of that lane is at its limit.
    """

    def __init__(self, slots: SlotLimit, per_owner: int, per_host: SlotLimit) -> None:
        self._slots, self._shared_slots = slots.total, slots.shared
        self._per_owner = per_owner
        self._per_host, self._shared_per_host = per_host.total, per_host.shared
        self._lanes: dict[Lane, deque[J]] = {}
        self._ready: dict[str, deque[Lane]] = {}  # lanes that can start something, by owner
        self._round: OrderedDict[str, None] = OrderedDict()  # owners with a ready lane and below their limit, in turn
        self._idle_round: OrderedDict[str, None] = OrderedDict()  # the idle ones of them
        self._waiting_for: dict[str, _Waiting] = {}  # by host
        self._blocked: dict[str, set[Lane]] = {}  # the same lanes, by owner
        self._offers: dict[str, set[Lane]] = {}  # lanes that waited and whose host has a free slot now, by owner
        self.started_of: dict[str, int] = {}  # by owner
        self.started_to: dict[str, int] = {}  # by host
        self.queued: dict[str, int] = {}  # by owner
        self.started = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[J]:
        """Iterate over the jobs that are not started."""
        return chain.from_iterable(self._lanes.values())

    def put(self, lane: Lane, job: J, *, first: bool = False) -> None:
        """Add a job at the end of its lane, or at its head."""
        self._size += 1
        self.queued[lane.owner] = self.queued.get(lane.owner, 0) + 1
        jobs = self._lanes.get(lane)
        if jobs is not None:
            if first:
                jobs.appendleft(job)
            else:
                jobs.append(job)
            return
        self._lanes[lane] = deque([job])
        self._ready.setdefault(lane.owner, deque()).append(lane)
        self._enter_round(lane.owner)

    def take(self) -> tuple[Lane, J] | None:
        """Return the next job to start, or None. It counts as started until `done`."""
        if self.started >= self._slots:
            return None
        while (owner := self._next_owner()) is not None:
            lanes, idle = self._ready[owner], owner not in self.started_of
            per_host = self._per_host if idle else self._shared_per_host
            while lanes:
                lane = lanes.popleft()
                if self.started_to.get(lane.host, 0) < per_host:
                    return lane, self._start(lane, lanes, idle)
                self._wait(lane, idle)
            del self._ready[owner]
        return None

    def done(self, lane: Lane) -> None:
        """Note that a job of this lane has ended."""
        self.started -= 1
        _decrement(self.started_of, lane.owner)
        _decrement(self.started_to, lane.host)
        if lane.owner in self._blocked and lane.owner not in self.started_of:
            self._became_idle(lane)
        if lane.host in self._waiting_for:
            self._offer(lane.host)
        if lane.owner in self._ready:
            self._enter_round(lane.owner)

    def drain(self) -> list[tuple[Lane, J]]:
        """Remove and return every job that is not started."""
        unstarted = [(lane, job) for lane, jobs in self._lanes.items() for job in jobs]
        for table in (self._lanes, self._ready, self._round, self._idle_round, self._waiting_for, self._blocked,
                      self._offers, self.queued):  # fmt: skip
            table.clear()
        self._size = 0
        return unstarted

    # Owners.

    def _next_owner(self) -> str | None:
        """Take the first owner that may start something out of the round."""
        if self.started < self._shared_slots:
            if not self._round:
                return None
            owner, _ = self._round.popitem(last=False)
            self._idle_round.pop(owner, None)
            return owner
        if not self._idle_round:
            return None
        owner, _ = self._idle_round.popitem(last=False)
        del self._round[owner]
        return owner

    def _enter_round(self, owner: str) -> None:
        started = self.started_of.get(owner, 0)
        if started < self._per_owner:
            self._round[owner] = None
            if not started:
                self._idle_round[owner] = None

    def _became_idle(self, ended: Lane) -> None:
        """Offer reserved slots to this owner at the other hosts that it waits for; `done` offers the slot of the ended job."""
        for lane in list(self._blocked[ended.owner]):
            self._waiting_for[lane.host].idle[lane] = None
            if lane.host != ended.host:
                self._offer(lane.host)

    def _became_busy(self, owner: str) -> None:
        for lane in self._blocked[owner]:
            self._waiting_for[lane.host].idle.pop(lane, None)

    # Lanes.

    def _start(self, lane: Lane, lanes: deque[Lane], idle: bool) -> J:
        owner, jobs = lane.owner, self._lanes[lane]
        job = jobs.popleft()
        self._size -= 1
        self.started += 1
        _decrement(self.queued, owner)
        self.started_of[owner] = self.started_of.get(owner, 0) + 1
        self.started_to[lane.host] = self.started_to.get(lane.host, 0) + 1
        if owner in self._offers:
            self._end_offer(lane)
        if jobs:
            lanes.append(lane)
        else:
            del self._lanes[lane]
        if idle and owner in self._blocked:
            self._became_busy(owner)
        if lanes:
            self._enter_round(owner)
        else:
            del self._ready[owner]
        if owner in self._offers:
            self._pass_on(owner, idle)
        return job

    def _pass_on(self, owner: str, was_idle: bool) -> None:
        """Offer this owner's slots to others if it cannot take them now: it is at its limit, or no longer idle."""
        if self.started_of[owner] >= self._per_owner:
            for lane in self._offers.pop(owner):
                self._offer(lane.host)
        elif was_idle:
            for lane in self._offers[owner]:
                self._offer(lane.host)

    def _wait(self, lane: Lane, idle: bool) -> None:
        """Let a lane wait for its host; at the head, if another lane took the slot that it was offered."""
        waiting = self._waiting_for.get(lane.host)
        if waiting is None:
            waiting = self._waiting_for[lane.host] = _Waiting(OrderedDict(), OrderedDict())
        blocked = self._blocked.get(lane.owner)
        if blocked is None:
            self._blocked[lane.owner] = {lane}
        else:
            blocked.add(lane)
        waiting.lanes[lane] = None
        if idle:
            waiting.idle[lane] = None
        if lane.owner in self._offers and self._end_offer(lane):
            waiting.lanes.move_to_end(lane, last=False)
            if idle:
                waiting.idle.move_to_end(lane, last=False)

    def _offer(self, host: str) -> None:
        """Offer a free slot to the first waiting lane whose owner may start it, and to the first idle one."""
        waiting = self._waiting_for.get(host)
        if waiting is None:
            return
        taken = self.started_to.get(host, 0)
        if taken < self._shared_per_host:
            while waiting.lanes:
                first = next(iter(waiting.lanes))
                if self._make_offer(first):
                    if first.owner not in self.started_of:
                        return
                    break
        if waiting.idle and taken < self._per_host:
            self._make_offer(next(iter(waiting.idle)))

    def _make_offer(self, lane: Lane) -> bool:
        """Offer a slot; return whether the lane's owner is below its limit. If not, the lane stays ready until it is."""
        owner, host = lane
        waiting, blocked = self._waiting_for[host], self._blocked[owner]
        del waiting.lanes[lane]
        waiting.idle.pop(lane, None)
        if not waiting.lanes:
            del self._waiting_for[host]
        blocked.remove(lane)
        if not blocked:
            del self._blocked[owner]
        ready = self._ready.get(owner)
        if ready is None:
            self._ready[owner] = deque((lane,))
        else:
            ready.appendleft(lane)
        if self.started_of.get(owner, 0) >= self._per_owner:
            return False
        self._enter_round(owner)
        self._offers.setdefault(owner, set()).add(lane)
        return True

    def _end_offer(self, lane: Lane) -> bool:
        """Withdraw the offer to a lane; return whether there was one."""
        offers = self._offers.get(lane.owner)
        if offers is None or lane not in offers:
            return False
        offers.remove(lane)
        if not offers:
            del self._offers[lane.owner]
        return True


def _decrement(counter: dict[str, int], name: str) -> None:
    count = counter[name] - 1
    if count:
        counter[name] = count
    else:
        del counter[name]
