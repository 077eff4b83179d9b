"""Fixtures of the fire kits: hourly schedules, workers, and helpers that settle and query fires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tickler.clock import ManualClock
from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.fire import Claim, Entry, Fire, Happened, Rule, Settlement, fire_id
from tickler.model.policy import Policy
from tickler.model.schedule import Id, Schedule, StoredSchedule
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store
from tickler.testing.store_contract import DAY_MS, HOUR_MS, NOW_MS, StoreContract
from tickler.when import At, Cron, When

HOOK = "https://example.org/hook"
HOURLY = Cron("0 * * * *")
ONCE = At("2030-11-20T13:00:00Z")  # hour(1)
MINUTE_MS = 60_000
LEASE_MS = 30_000
EXPIRES_AT = NOW_MS + 30 * DAY_MS

AT_MOST_ONCE = Policy(delivery="at-most-once")
CATCH_UP = Policy(missed="all")
SPREAD = Policy(spread=1800)
WAIT = Policy(overlap="wait")


def hour(n: float) -> int:
    """Return the n-th due instant of an hourly schedule that was put at NOW_MS."""
    return NOW_MS + round(n * HOUR_MS)


def minutely(minute: int) -> Cron:
    """Return an hourly expression, this many minutes after the full hour."""
    return Cron(f"{minute} * * * *")


def schedule(key: str = "digest", when: When = HOURLY, *, owner: str = "u1", **fields: object) -> Schedule:
    return Schedule(owner=owner, key=key, when=when, **{"target": HOOK, **fields})  # type: ignore[arg-type]  # any of its fields


def triggered(key: str = "digest", at: int = hour(1)) -> Fire:
    """Return a manually triggered fire."""
    id = fire_id("u1", key, at, triggered=True)
    return Fire(id=id, owner="u1", key=key, nominal_at=at, opened_at=at, deliver_after=at)


def fires_of(claims: Sequence[Claim]) -> list[Fire]:
    """Return the fires of claims, each of which must have one."""
    fires = [claim.fire for claim in claims if claim.fire is not None]
    assert len(fires) == len(claims), "a claim has no fire, though its schedule is delivered at least once"
    return fires


def keys(claims: Sequence[Claim]) -> list[str]:
    return [claim.schedule.key for claim in claims]


def nominals(claims: Sequence[Claim]) -> list[int]:
    return [claim.nominal_at for claim in claims]


def entry(fire: Fire, at: int, happened: Happened = "delivered", detail: str | None = None) -> Entry:
    return Entry(
        owner=fire.owner,
        key=fire.key,
        nominal_at=fire.nominal_at,
        at=at,
        happened=happened,
        fire_id=fire.id,
        attempt=fire.attempt,
        detail=detail,
        worker=fire.worker,
    )


def done(fire: Fire, at: int, *, delete_schedule: bool = False) -> Settlement:
    id = Id(fire.owner, fire.key)
    return Settlement(id, fire, "done", entry(fire, at), delete_schedule=delete_schedule)


def retry(fire: Fire, at: int, deliver_after: int) -> Settlement:
    failed = entry(fire, at, "failed", "it answered 503")
    return Settlement(Id(fire.owner, fire.key), fire, "retry", failed, deliver_after)


def dead(fire: Fire, at: int, *, delete_schedule: bool = False) -> Settlement:
    failed = entry(fire, at, "failed", "it answered 410")
    return Settlement(Id(fire.owner, fire.key), fire, "dead", failed, delete_schedule=delete_schedule)


def release(fire: Fire, deliver_after: int | None = None) -> Settlement:
    return Settlement(Id(fire.owner, fire.key), fire, "release", None, deliver_after)


def noted(claim: Claim, at: int, *, delete_schedule: bool = False) -> Settlement:
    """Return the settlement of a claim without a fire."""
    owner, key = claim.schedule.id
    said = Entry(owner=owner, key=key, nominal_at=claim.nominal_at, at=at, happened="delivered", attempt=1)
    return Settlement(Id(owner, key), None, "done", said, delete_schedule=delete_schedule)


async def entries(fires: FireStore, key: str = "digest", *, owner: str = "u1") -> list[Entry]:
    """Return the history of a schedule, the latest first."""
    return [entry for _, entry in await fires.history(id=Id(owner, key), before=None, limit=1000)]


async def happenings(fires: FireStore, key: str = "digest") -> list[tuple[Happened, int]]:
    """Return outcomes and occurrences, sorted."""
    return sorted((entry.happened, entry.nominal_at) for entry in await entries(fires, key))


class Skip(msgspec.Struct, frozen=True):
    """A history entry about skipped instants."""

    rule: Rule | None
    first: int
    last: int | None
    count: int | None


async def skips(fires: FireStore, key: str = "digest") -> list[Skip]:
    """Return skips, sorted by their first instant."""
    found = [entry for entry in await entries(fires, key) if entry.happened == "skipped"]
    ordered = sorted(found, key=lambda entry: entry.nominal_at)
    return [Skip(entry.rule, entry.nominal_at, entry.until_at, entry.count) for entry in ordered]


async def listed(fires: FireStore, state: str, key: str | None = None, *, owner: str | None = None) -> list[Fire]:
    id = None if key is None else Id("u1", key)
    return await fires.list(state=state, id=id, owner=owner, after=None, limit=1000)  # type: ignore[arg-type]  # one of the states


async def stored(schedules: Schedules, key: str = "digest") -> StoredSchedule:
    found = await schedules.get("u1", key)
    assert found is not None, f"u1/{key} is gone"
    return found


class Worker:
    """A worker on the store under test."""

    def __init__(self, fires: FireStore, name: str) -> None:
        self.fires = fires
        self.name = name
        self._lease: dict[str, Any] = {"worker": name, "lease_ms": LEASE_MS, "expires_at": EXPIRES_AT}

    async def claim(self, now_ms: int, limit: int = 100, **how: Any) -> list[Claim]:
        """Claim, with other fields of a `ClaimRequest` where they matter."""
        return await self.fires.claim(ClaimRequest(now_ms=now_ms, limit=limit, **self._lease, **how))

    async def lease(self, now_ms: int, limit: int = 100, **how: Any) -> list[Claim]:
        """Lease, with other fields of a `LeaseRequest` where they matter."""
        return await self.fires.lease(LeaseRequest(now_ms=now_ms, limit=limit, **self._lease, **how))

    async def settle(self, now_ms: int, *settlements: Settlement) -> list[Fire]:
        return await self.fires.settle(settlements, now_ms, expires_at=EXPIRES_AT)


async def one_in_every_state(schedules: Schedules, worker: Worker) -> dict[str, Fire]:
    """Create a dead, a leased and a waiting fire by hour(3)."""
    await schedules.put(schedule(policy=WAIT))
    (first,) = fires_of(await worker.claim(hour(1)))
    await worker.settle(hour(1), dead(first, hour(1)))
    (second,) = fires_of(await worker.claim(hour(2)))
    assert await worker.claim(hour(3)) == []
    return {"dead": first, "leased": second}


class FireFixtures(StoreContract):
    """Base of the fire kits: schedules, a fire store, and two workers."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(NOW_MS)

    @pytest.fixture
    def schedules(self, store: Store, clock: ManualClock) -> Schedules:
        return Schedules(store.schedules, clock)

    @pytest.fixture
    def fires(self, store: Store) -> FireStore:
        return store.fires

    @pytest.fixture
    def worker(self, fires: FireStore) -> Worker:
        return Worker(fires, "worker")

    @pytest.fixture
    def other(self, fires: FireStore) -> Worker:
        return Worker(fires, "other")
