"""The fair queue, against a naive one: owners in turn, order within a lane, limits, and nothing lost or starved."""

from __future__ import annotations

import itertools
import os
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.deliver.fair_queue import FairQueue, Lane, SlotLimit

SOAK = os.environ.get("TICKLER_SOAK") == "1"


def lane(owner: str, host: str = "example.org") -> Lane:
    return Lane(owner, host)


def a_queue(per_owner: int, per_host: int, in_flight: int = 100_000) -> FairQueue[str]:
    """Return a queue without reserved slots."""
    return FairQueue(SlotLimit(in_flight), per_owner, SlotLimit(per_host))


def fill(queue: FairQueue[str], owner: str, number: int, host: str = "example.org") -> None:
    for n in range(number):
        queue.put(lane(owner, host), f"{owner}{n}")


def taken(queue: FairQueue[str]) -> list[str]:
    """Take everything that can start at once."""
    return [found[1] for found in iter(queue.take, None)]


def test_owners_take_turns_however_much_one_of_them_has() -> None:
    queue = a_queue(per_owner=10, per_host=100)
    fill(queue, "a", 4)
    fill(queue, "b", 2)
    fill(queue, "c", 1)
    assert taken(queue) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


def test_an_owner_starts_no_more_than_its_limit_until_one_is_over() -> None:
    queue = a_queue(per_owner=2, per_host=100)
    fill(queue, "a", 4)
    fill(queue, "b", 3)
    assert taken(queue) == ["a0", "b0", "a1", "b1"]
    queue.done(lane("a"))
    assert taken(queue) == ["a2"]
    assert list(queue) == ["a3", "b2"]


@pytest.mark.parametrize("hosts", ["all to one host", "each to its own"])
def test_an_owner_with_nothing_in_flight_starts_at_once_while_ten_others_hang(hosts: str) -> None:
    """Whichever of them came first, and however much they have."""
    queue: FairQueue[str] = FairQueue(SlotLimit(100, 20), 25, SlotLimit(50, 10))
    for n in range(10):
        fill(queue, f"hangs{n}", 1_000, "h" if hosts == "all to one host" else f"h{n}")
        taken(queue)
    fill(queue, "idle", 2, "h")
    assert taken(queue) == ["idle0"]
    queue.done(lane("idle", "h"))
    assert taken(queue) == ["idle1"], "and again, when nothing of it is in flight"


def test_what_is_reserved_is_for_the_first_attempt_of_an_owner_alone() -> None:
    queue: FairQueue[str] = FairQueue(SlotLimit(5, 2), 5, SlotLimit(100))
    fill(queue, "a", 10)
    assert len(taken(queue)) == 3
    fill(queue, "b", 10)
    assert taken(queue) == ["b0"]
    queue.done(lane("a"))
    assert taken(queue) == [], "three are in flight: what is left is reserved, and neither of them is idle"
    queue.done(lane("a"))
    assert len(taken(queue)) == 1


def test_an_owner_whose_last_attempt_ended_takes_what_a_host_has_reserved() -> None:
    queue: FairQueue[str] = FairQueue(SlotLimit(100), 10, SlotLimit(3, 1))
    fill(queue, "a", 5, "h")
    fill(queue, "b", 1, "elsewhere")
    assert taken(queue) == ["a0", "b0", "a1"]
    fill(queue, "b", 1, "h")
    assert taken(queue) == [], "b has something in flight, and the last place at h is reserved"
    queue.done(lane("b", "elsewhere"))
    assert taken(queue) == ["b0"]


def test_a_host_is_sent_no_more_than_its_limit_and_does_not_hold_up_other_hosts() -> None:
    queue = a_queue(per_owner=10, per_host=2)
    fill(queue, "a", 3, "slow")
    fill(queue, "b", 2, "slow")
    fill(queue, "a", 1, "quick")
    assert taken(queue) == ["a0", "b0", "a0"]
    queue.done(lane("a", "slow"))
    assert len(taken(queue)) == 1


def test_nothing_is_taken_from_an_empty_queue() -> None:
    queue = a_queue(per_owner=1, per_host=1)
    assert queue.take() is None
    assert (len(queue), list(queue), queue.drain(), dict(queue.queued)) == (0, [], [], {})


def test_fifty_owners_with_one_each_come_right_after_the_first_of_a_flood() -> None:
    queue = a_queue(per_owner=20, per_host=1_000)
    fill(queue, "flood", 10_000)
    started = [queue.take() for _ in range(5)]
    for n in range(50):
        queue.put(lane(f"small{n}"), "one")
    started += [queue.take() for _ in range(51 + 20 - 5)]
    owners = {found[0].owner for found in started if found is not None}
    assert owners == {"flood", *(f"small{n}" for n in range(50))}


def test_fifty_owners_with_one_each_come_soon_although_all_go_to_one_busy_host() -> None:
    """A start needs an end before it, and all ends belong to the flood."""
    queue = a_queue(per_owner=5, per_host=5)
    fill(queue, "flood", 10_000)
    for n in range(50):
        queue.put(lane(f"small{n}"), "one")
    order: list[Lane] = []
    running = [found[0] for found in iter(queue.take, None)]
    while len(order) < 51 + 5:
        order.append(running.pop(0))
        queue.done(order[-1])
        running += [found[0] for found in iter(queue.take, None)]
    assert {found.owner for found in order} >= {f"small{n}" for n in range(50)}


def test_a_host_with_room_is_not_kept_for_an_owner_that_is_at_its_limit() -> None:
    queue = a_queue(per_owner=1, per_host=1)
    queue.put(lane("first", "h"), "holds the host")
    assert taken(queue) == ["holds the host"]
    fill(queue, "a", 1, "h")
    fill(queue, "b", 1, "h")
    assert taken(queue) == []
    queue.put(lane("a", "other"), "a's one")
    assert taken(queue) == ["a's one"]
    queue.done(lane("first", "h"))
    assert taken(queue) == ["b0"], "a waited longer, but may start nothing now"
    queue.done(lane("a", "other"))
    queue.done(lane("b", "h"))
    assert taken(queue) == ["a0"]


def test_an_offered_place_goes_to_the_next_when_its_owner_reaches_its_limit_elsewhere() -> None:
    queue = a_queue(per_owner=2, per_host=1)
    for host in ("h", "g"):
        queue.put(lane(f"holds {host}", host), host)
    assert taken(queue) == ["h", "g"]
    for owner in ("a", "b"):
        fill(queue, owner, 1, "h")
        fill(queue, owner, 1, "g")
    assert taken(queue) == []
    queue.put(lane("a", "k"), "a's one")
    assert taken(queue) == ["a's one"]
    for host in ("h", "g"):
        queue.done(lane(f"holds {host}", host))
    found = [at for at, _ in iter(queue.take, None)]
    assert found == [lane("a", "g"), lane("b", "h")], "both were offered to a, who may start only one more"


def test_what_is_drained_can_be_put_again_and_what_was_started_still_counts() -> None:
    queue = a_queue(per_owner=2, per_host=3)
    fill(queue, "a", 3)
    fill(queue, "b", 3)
    assert taken(queue) == ["a0", "b0", "a1"]
    left = queue.drain()
    assert sorted(job for _, job in left) == ["a2", "b1", "b2"]
    assert (len(queue), list(queue), queue.take(), dict(queue.queued)) == (0, [], None, {})
    for at, job in left:
        queue.put(at, job)
    assert taken(queue) == []
    queue.done(lane("a"))
    assert len(taken(queue)) == 1


@pytest.mark.parametrize("hosts", [1, 50])
def test_many_who_wait_for_a_busy_host_all_get_there(hosts: int) -> None:
    queue: FairQueue[int] = FairQueue(SlotLimit(100_000), 2, SlotLimit(2))
    for n in range(20_000):
        queue.put(Lane(f"owner{n % 2_000}", f"host{n % hosts}"), n)
    done = []
    running = deque(iter(queue.take, None))
    while running:
        at, job = running.popleft()
        done.append(job)
        queue.done(at)
        running.extend(iter(queue.take, None))
    assert sorted(done) == list(range(20_000))
    assert (len(queue), dict(queue.queued)) == (0, {})


class Model:
    """The queue, and a naive model of it."""

    def __init__(self, slots: SlotLimit, per_owner: int, per_host: SlotLimit) -> None:
        self.limits = slots, per_owner, per_host
        self.queue: FairQueue[int] = FairQueue(slots, per_owner, per_host)
        self.numbers = itertools.count()
        self.waiting: dict[Lane, list[int]] = {}
        self.running: list[Lane] = []
        self.passed_over: dict[str, Counter[str]] = {}  # owners that could start something, and who went before since then

    def startable(self) -> set[str]:
        """Owners with something that no limit forbids."""
        of, to = Counter(each.owner for each in self.running), Counter(each.host for each in self.running)
        slots, per_owner, per_host = self.limits

        def may_start(each: Lane) -> bool:
            reserved = 0 if of[each.owner] == 0 else 1  # times what is reserved, for all but the idle
            return (
                len(self.running) < slots.total - reserved * slots.reserved
                and of[each.owner] < per_owner
                and to[each.host] < per_host.total - reserved * per_host.reserved
            )

        return {each.owner for each in self.waiting if may_start(each)}

    def put(self, at: Lane, job: int) -> None:
        self.queue.put(at, job)
        self.waiting.setdefault(at, []).append(job)

    def take(self) -> bool:
        startable = self.startable()
        found = self.queue.take()
        if found is None:
            assert not startable, "something can be started, and is not"
            return False
        at, job = found
        assert at.owner in startable, "beyond a limit"
        assert job == self.waiting[at].pop(0), "not in the order of its lane"
        if not self.waiting[at]:
            del self.waiting[at]
        self.running.append(at)
        for owner in startable - {at.owner}:
            before = self.passed_over.setdefault(owner, Counter())
            before[at.owner] += 1
            assert before[at.owner] <= 2, f"{owner} could start something, and {at.owner} went before it again and again"
        still = self.startable() - {at.owner}
        self.passed_over = {owner: before for owner, before in self.passed_over.items() if owner in still}
        return True

    def done(self, place: int) -> None:
        if self.running:
            self.queue.done(self.running.pop(place % len(self.running)))

    def drain(self) -> None:
        """And put it all back."""
        left = self.queue.drain()
        assert sorted(job for _, job in left) == self.jobs()
        self.waiting, self.passed_over = {}, {}
        for at, job in left:
            self.put(at, job)

    def jobs(self) -> list[int]:
        return sorted(job for jobs in self.waiting.values() for job in jobs)

    def check(self) -> None:
        assert sorted(self.queue) == self.jobs(), "nothing is lost"
        assert len(self.queue) == len(self.jobs())
        assert self.queue.queued == Counter(each.owner for each, jobs in self.waiting.items() for _ in jobs)


LANES = [Lane(owner, host) for owner in "abc" for host in "xyz"]
puts = st.tuples(st.just("put"), st.integers(0, len(LANES) - 1))
takes = st.tuples(st.just("take"), st.sampled_from([1, 2, 1_000]))
ends = st.tuples(st.just("done"), st.integers(0, 5))
drains = st.tuples(st.just("drain"), st.just(0))
places = st.sampled_from([SlotLimit(1), SlotLimit(2), SlotLimit(2, 1), SlotLimit(3, 1), SlotLimit(4, 2)])
slots = st.one_of(places, st.sampled_from([SlotLimit(5, 2), SlotLimit(100_000)]))
steps = st.one_of(puts, puts, takes, ends, ends, st.one_of(takes, drains))


@settings(max_examples=5_000 if SOAK else 150, derandomize=not SOAK, deadline=None, database=None)
@given(slots, st.integers(1, 3), places, st.lists(steps, min_size=50, max_size=100))
def test_whatever_is_done_to_it_it_does_what_the_naive_queue_allows(
    slots: SlotLimit, per_owner: int, per_host: SlotLimit, steps: list[tuple[str, int]]
) -> None:
    model = Model(slots, per_owner, per_host)
    for number, (step, value) in enumerate(steps):
        if step == "put":
            model.put(LANES[value], number)
        elif step == "take":
            any(not model.take() for _ in range(value))
        elif step == "done":
            model.done(value)
        else:
            model.drain()
        model.check()
    while model.waiting or model.running:
        while model.take():
            pass
        model.done(0)
    model.check()
