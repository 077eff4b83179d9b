"""A random program that runs on every store at once: all give the same answers, and hold the same after each step.

The memory store is the model: its code is the simplest. Where the contract leaves something free, as the order of two rows that
are due at the same instant, the answers are put in order before they are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from conformance.emptied import empty
from tickler import At, Cron, Every, IndexRow, Policy, Schedule, Weekly
from tickler.client import Settings, Tickler
from tickler.clock import ManualClock
from tickler.errors import InvalidSchedule, TicklerError
from tickler.fires.contract import ClaimRequest, LeaseRequest, next_at
from tickler.model.fire import POSTPONED, Claim, DueItem, Entry, Fire, FireState, Settlement, Then
from tickler.model.schedule import State
from tickler.stores.contents import Part, RawSchedule
from tickler.stores.optional import contents_of
from tickler.stores.store import Store
from tickler.testing.contents_contract import all_of
from tickler.testing.fire_fixtures import LEASE_MS
from tickler.testing.hourly import HOOK, hour
from tickler.testing.store_contract import DAY_MS, HOUR_MS, NOW_MS
from tickler.when import When

T = TypeVar("T")
Outcome = Literal["hold", "done", "retry", "dead", "release", "postpone"]

RETRY_AFTER_MS = 5_000
EXPIRES_AT = NOW_MS + 365 * DAY_MS
MAX_ROUNDS = 50  # of claiming until nothing is left

OWNERS = st.sampled_from(["ada", "bob"])
KEYS = st.sampled_from(["digest", "post"])
WORKERS = st.sampled_from(["one", "two"])
STATES: st.SearchStrategy[State | None] = st.sampled_from([None, "active", "paused"])
LIMITS = st.sampled_from([1000, 2])

WHENS: list[When] = [
    Cron("0 * * * *"),
    Cron("*/20 * * * *"),
    Cron("30 2 * * *", tz="America/New_York"),
    Weekly({"wed": ["14:00", "14:30"], "thu": "09:00"}, tz="Europe/Paris"),
    Every(minutes=90, start=NOW_MS),
    Every(minutes=45),
    At("2030-11-20T13:00:00Z"),
    At("2030-11-22T09:30:00", tz="Europe/Paris"),
]
POLICIES = [
    Policy(attempts=2),
    Policy(delivery="at-most-once"),
    Policy(overlap="wait"),
    Policy(overlap="wait", missed="all", max_catchup=4),
    Policy(overlap="skip", missed="all", attempts=1),
    Policy(missed="skip", grace=60),
    Policy(missed="all", max_catchup=3),
    Policy(spread=600),
]
SCHEDULES = st.fixed_dictionaries(
    {
        "owner": OWNERS,
        "key": KEYS,
        "when": st.sampled_from(WHENS),
        "policy": st.sampled_from(POLICIES),
        "target": st.sampled_from([HOOK, HOOK, HOOK, None]),
        "payload": st.sampled_from([None, {"n": 1}, ["ä", 2.5, False]]),
        "starts_at": st.sampled_from([None, None, hour(2)]),
        "ends_at": st.sampled_from([None, None, hour(30)]),
        "delete_after": st.sampled_from([None, True, False]),
        "enabled": st.sampled_from([True, True, True, False]),
    }
)
OUTCOMES = st.lists(st.sampled_from(["hold", "done", "retry", "dead", "release", "postpone"]), max_size=4)


class Turn(NamedTuple):
    """How a worker takes what it takes."""

    limit: int = 1000
    ahead_ms: int = 0
    takes_over: bool = True  # what another's lease ran out on
    busy: tuple[str, ...] = ()


PAUSES_S = st.sampled_from([3_600, 61, 1_200, 0, 10_800, 86_400, 29])
TURNS = st.sampled_from(
    [Turn(), Turn(limit=2), Turn(limit=3, takes_over=False), Turn(ahead_ms=HOUR_MS), Turn(ahead_ms=250), Turn(busy=("ada",))]
)


class Refused(NamedTuple):
    """An error as an answer: equal to another of the same class that says the same."""

    error: type[TicklerError]
    text: str


class Held(NamedTuple):
    """Something that a worker claimed and has not settled."""

    worker: str
    claim: Claim


class Stage:
    """The stores that a program runs on, opened once for many programs, and an event loop for them."""

    def __init__(self, stores: dict[str, Store]) -> None:
        self.clock = ManualClock(NOW_MS)
        self.ticklers = {name: Tickler(store, self.clock, Settings(create=True, environ={})) for name, store in stores.items()}
        self._runner = asyncio.Runner()

    def __enter__(self) -> Stage:
        self._runner.__enter__()
        self.run(self._each(lambda t: t.open()))
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self._each(lambda t: t.close()))
        self._runner.__exit__(*exc)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def restart(self) -> None:
        self.clock.set(NOW_MS)
        self.run(self._each(lambda t: empty(t.store)))

    def ask(self, question: Callable[[Tickler], Awaitable[T]]) -> T | Refused:
        """What all of them answer."""
        answers = self.run(self._each(lambda t: _answered(question(t))))
        model, expected = next(iter(answers.items()))
        for name, answer in answers.items():
            assert answer == expected, f"{name} differs from {model}:\n  {name}: {answer}\n  {model}: {expected}"
        return expected

    async def _each(self, work: Callable[[Tickler], Awaitable[T]]) -> dict[str, T]:
        answers = await asyncio.gather(*(work(t) for t in self.ticklers.values()))
        return dict(zip(self.ticklers, answers, strict=True))


class SideBySide(RuleBasedStateMachine):
    """Two owners with a few schedules each, two workers, and a clock that is moved to and fro. `stage` is set by the test."""

    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Held] = []

    @property
    def now_ms(self) -> int:
        return self.stage.clock.now_ms()

    @initialize(several=st.lists(SCHEDULES, min_size=2, max_size=5))
    def begin(self, several: list[dict[str, Any]]) -> None:
        self.stage.restart()
        for fields in several:
            self.put({**fields, "enabled": True, "target": HOOK})

    # What people do.

    @rule(fields=SCHEDULES, version=st.sampled_from([None, None, 1, 2]))
    def put(self, fields: dict[str, Any], version: int | None = None) -> None:
        schedule = _schedule(fields)
        self.stage.ask(lambda t: t.schedules.write(schedule, version=version))

    @rule(owner=OWNERS, fields=st.lists(SCHEDULES, min_size=1, max_size=2, unique_by=lambda each: each["key"]))
    def declare(self, owner: str, fields: list[dict[str, Any]]) -> None:
        declared = [_schedule({**each, "owner": owner}) for each in fields]
        self.stage.ask(lambda t: t.schedules.declare(owner, declared))

    @rule(owner=OWNERS, key=KEYS, change=st.sampled_from(["trigger", "pause", "resume", "delete"]))
    def change(self, owner: str, key: str, change: str) -> None:
        self.stage.ask(lambda t: getattr(t if change == "trigger" else t.schedules, change)(owner, key))

    @rule(owner=OWNERS, key=KEYS, payload=st.sampled_from([1, 1, 2]), at=st.sampled_from([None, None, hour(1), hour(12)]))
    def send(self, owner: str, key: str, payload: int, at: int | None) -> None:
        self.stage.ask(lambda t: t.send(owner, key, HOOK, payload, at=at))

    @rule(state=st.sampled_from(["dead", "waiting", "open"]), which=st.integers(0, 3), retry=st.booleans())
    def change_a_fire(self, state: FireState, which: int, retry: bool) -> None:
        """Send it again or cancel it, by its id, whatever its state allows."""
        page = self.stage.ask(lambda t: t.fires.list(state=state))
        assert not isinstance(page, Refused)
        if page.items:
            id = page.items[which % len(page.items)].id
            self.stage.ask(lambda t: t.fires.retry(id) if retry else t.fires.cancel(id))

    @rule(owner=OWNERS, when=st.sampled_from(WHENS), in_ms=st.sampled_from([0, HOUR_MS]), limit=LIMITS, keeps=st.booleans())
    def dispatch_by_hand(self, owner: str, when: When, in_ms: int, limit: int, keeps: bool) -> None:
        """Somebody keeps a row of the index alone, claims from the index, and now and then ends the row again."""
        now_ms = self.now_ms
        row = IndexRow(owner, "row", when, now_ms + in_ms)
        self.stage.ask(lambda t: t.index.upsert(row))
        self.stage.ask(lambda t: _all_taken(t, now_ms, lambda: t.index.claim_due(now_ms, limit), _fires_at))
        if not keeps:
            self.stage.ask(lambda t: t.index.remove(owner, "row"))

    # What workers do.

    @rule(after_s=PAUSES_S, turn=TURNS, outcomes=OUTCOMES)
    def one_works(self, after_s: int, turn: Turn, outcomes: list[Outcome]) -> None:
        self._work("one", self._wait(after_s), turn, outcomes)

    @rule(after_s=PAUSES_S, turn=TURNS, outcomes=OUTCOMES)
    def two_works(self, after_s: int, turn: Turn, outcomes: list[Outcome]) -> None:
        self._work("two", self._wait(after_s), turn, outcomes)

    @precondition(lambda self: self.held)
    @rule(after_s=st.sampled_from([1, 29, 61]), outcomes=OUTCOMES)
    def settle(self, after_s: int, outcomes: list[Outcome]) -> None:
        """Late, perhaps when another has leased it."""
        self._wait(after_s)
        self._settle(outcomes)

    @precondition(lambda self: self.held)
    @rule(worker=WORKERS)
    def extend(self, worker: str) -> None:
        fires = [held.claim.fire for held in self.held if held.worker == worker and held.claim.fire is not None]
        if fires:
            self.stage.ask(lambda t: _in_order(t.fires.extend(fires, self.now_ms + LEASE_MS)))

    @precondition(lambda self: self.held)
    @rule(worker=WORKERS)
    def crash(self, worker: str) -> None:
        """It forgets all it had; another finds it when the leases have run out."""
        self.held = [held for held in self.held if held.worker != worker]

    @rule(seconds=st.sampled_from([-1, -300, -7_200]))
    def set_the_clock_back(self, seconds: int) -> None:
        self._wait(seconds)

    # What everybody sees.

    @rule(
        owner=OWNERS, key=KEYS, at=st.sampled_from([None, hour(1), hour(24)]), state=st.sampled_from([None, "active", "paused"])
    )
    def look(self, owner: str, key: str, at: int | None, state: Any) -> None:
        now_ms = self.now_ms
        self.stage.ask(lambda t: t.why(owner, key, at))
        self.stage.ask(lambda t: _history(t, owner, key))
        self.stage.ask(lambda t: t.schedules.list(owner=owner, state=state, limit=1))
        self.stage.ask(lambda t: t.index.count(due_by=now_ms))
        self.stage.ask(lambda t: t.index.next_due())
        self.stage.ask(lambda t: next_at(t.store.fires))
        self.stage.ask(lambda t: _sorted(t.store.fires.peek(now_ms, 1000)))

    @invariant()
    def all_hold_the_same(self) -> None:
        self.stage.ask(_contents)

    def _wait(self, seconds: int) -> int:
        self.stage.clock.advance(timedelta(seconds=seconds))
        return self.now_ms

    def _work(self, worker: str, now_ms: int, turn: Turn, outcomes: Sequence[Outcome]) -> None:
        """One round: claim what is due, lease what is owed again, settle some of what is held."""

        def claims(t: Tickler) -> Awaitable[list[Claim]]:
            return t.store.fires.claim(
                ClaimRequest(
                    now_ms=now_ms,
                    limit=turn.limit,
                    worker=worker,
                    lease_ms=LEASE_MS,
                    expires_at=EXPIRES_AT,
                    except_owners=turn.busy,
                    ahead_ms=turn.ahead_ms,
                )
            )

        def leases(t: Tickler) -> Awaitable[list[Claim]]:
            return t.store.fires.lease(
                LeaseRequest(
                    now_ms=now_ms,
                    limit=turn.limit,
                    worker=worker,
                    lease_ms=LEASE_MS,
                    expires_at=EXPIRES_AT,
                    expired=turn.takes_over,
                    except_owners=turn.busy,
                )
            )

        if turn.ahead_ms:  # only once: each call takes one instant more
            self._hold(worker, self.stage.ask(lambda t: _sorted(claims(t))))
        else:
            self._hold(worker, self.stage.ask(lambda t: _all_taken(t, now_ms, lambda: claims(t), _due_at)))
        self._hold(worker, self.stage.ask(lambda t: _all_taken(t, now_ms, lambda: leases(t), _any_order)))
        self._settle(outcomes)

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        """Of what is held, each as its outcome says, as far as there are outcomes; the rest stays."""
        now_ms = self.now_ms
        settled = [_settlement(held, then, now_ms) for held, then in zip(self.held, outcomes, strict=False) if then != "hold"]
        kept = [held for held, then in zip(self.held, outcomes, strict=False) if then == "hold"]
        self.held = kept + self.held[len(outcomes) :]
        if settled:
            self.stage.ask(lambda t: _in_order(t.store.fires.settle(settled, now_ms, expires_at=EXPIRES_AT)))

    def _hold(self, worker: str, claims: list[Claim] | Refused) -> None:
        assert not isinstance(claims, Refused)
        self.held += [Held(worker, claim) for claim in claims]


def _schedule(fields: dict[str, Any]) -> Schedule:
    try:
        return Schedule(**fields)
    except InvalidSchedule:  # a spread longer than its interval, bounds the wrong way round
        reject()


async def _answered(answer: Awaitable[T]) -> T | Refused:
    try:
        return await answer
    except TicklerError as error:
        return Refused(type(error), str(error))


async def _all_taken(t: Tickler, now_ms: int, take: Callable[[], Awaitable[Sequence[T]]], due_at: Callable[[T], int]) -> list[T]:
    """What calls give until they change nothing any more, in an order of ours. Each call gives the earliest first.

    One that gives nothing is not always the last: it may have met what a policy skips.
    """
    taken: list[T] = []
    due: list[DueItem] | None = None
    for _ in range(MAX_ROUNDS):
        some = await take()
        instants = [due_at(each) for each in some]
        assert instants == sorted(instants), "not the earliest first"
        taken += some
        if not some:
            before, due = due, await _sorted(t.store.fires.peek(now_ms, 1000))
            if due == before or not due:
                return sorted(taken, key=repr)
    raise AssertionError("there is always more")


async def _sorted(answer: Awaitable[Sequence[T]]) -> list[T]:
    return sorted(await answer, key=repr)


async def _in_order(answer: Awaitable[Sequence[Fire]]) -> list[Fire]:
    return sorted(await answer, key=lambda fire: fire.id)


def _due_at(claim: Claim) -> int:
    return claim.due_at


def _any_order(claim: Claim) -> int:
    """By when it was to be delivered, which a lease has overwritten."""
    return 0


def _fires_at(row: IndexRow) -> int:
    return row.next_fire_at


def _settlement(held: Held, outcome: Then, now_ms: int) -> Settlement:
    claim, fire = held.claim, held.claim.fire
    schedule, delivered = claim.schedule, outcome == "done"
    entry = Entry(
        owner=schedule.owner,
        key=schedule.key,
        nominal_at=claim.nominal_at,
        at=now_ms,
        happened="delivered" if delivered else "postponed" if outcome == "postpone" else "failed",
        fire_id=None if fire is None else fire.id,
        attempt=1 if fire is None else fire.attempt,
        detail=None if delivered else "it answered 503",
        worker=held.worker,
    )
    if fire is None:
        return Settlement(schedule.id, None, "done", entry, delete_schedule=delivered and schedule.delete_after)
    reason = f"{POSTPONED}it answered 503" if outcome == "postpone" else None
    deliver_after = now_ms + RETRY_AFTER_MS if outcome in ("retry", "release", "postpone") else None
    told = None if outcome == "release" else entry
    delete = delivered and schedule.delete_after
    return Settlement(schedule.id, fire, outcome, told, deliver_after, delete_schedule=delete, reason=reason)


async def _history(t: Tickler, owner: str, key: str) -> list[Entry]:
    """Entries of the same instant come in any order."""
    page = await t.fires.history(owner, key, limit=1000)
    assert [entry.at for entry in page.items] == sorted((entry.at for entry in page.items), reverse=True)
    return sorted(page.items, key=repr)


async def _contents(t: Tickler) -> dict[str, list[object]]:
    contents = contents_of(t.store)
    parts: dict[str, Part[Any]] = {
        "schedules": contents.schedules,
        "rows": contents.rows,
        "fires": contents.fires,
        "history": contents.history,
    }
    return {name: sorted(map(_comparable, await all_of(part)), key=repr) for name, part in parts.items()}


def _comparable(thing: object) -> object:
    """A body is JSON, whose fields come in any order."""
    if isinstance(thing, RawSchedule):
        return msgspec.structs.replace(thing, body=""), msgspec.json.decode(thing.body)
    return thing
