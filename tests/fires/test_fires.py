"""Fires as callers use them: what is taken, what is refused, pages that lead on, and errors that say what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from tickler import InvalidInput, InvalidSchedule, ManualClock, Policy, Schedule, Tickler, connect
from tickler.errors import FireNotFound
from tickler.fires import Entry, Fire
from tickler.fires.fires import Retried
from tickler.model.fire import Claim, FireState, Settlement, fire_id
from tickler.model.limits import MAX_LIMIT
from tickler.model.schedule import Id

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
KEPT = timedelta(days=7)
KEPT_MS = 7 * 86_400_000

NO_LIMITS: list[object] = [0, -1, True, 1.0, "10", None, MAX_LIMIT + 1]
NO_INSTANTS: list[tuple[object, str]] = [
    (NOW_MS // 1000, "looks like seconds"),
    (NOW_MS * 1000, "micro- or nanoseconds"),
    (0, "a missing value"),
    (float(NOW_MS), "is a float"),
    (None, "is a NoneType"),
    (NOW.replace(tzinfo=None), "naive datetime"),
]
NO_CURSORS: list[object] = [
    "",
    "-",
    "5",
    "5-",
    "-5",
    "x-y",
    "1.5-a",
    "-1-a",
    " 1-a",
    "1" * 200 + "-a",
    5,
    1.5,
    b"1-a",
    ("1", "a"),
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect("sqlite://", clock=clock, keep_history=KEPT) as tickler:
        yield tickler


async def put(t: Tickler, *keys: str, owner: str = "u1", policy: Policy | None = None) -> None:
    """Hourly ones."""
    given = policy or Policy()
    await t.schedules.put_many(
        Schedule(owner=owner, key=key, when="0 * * * *", target="https://h.example", policy=given) for key in keys
    )


async def claimed(t: Tickler, clock: ManualClock, hours: float = 1) -> list[Claim]:
    """What is due after so many hours."""
    clock.advance(timedelta(hours=hours))
    return await t.fires.claim(clock.now_ms(), worker="w1")


def fires_of(claims: list[Claim]) -> list[Fire]:
    """By key."""
    return sorted((claim.fire for claim in claims if claim.fire is not None), key=lambda fire: fire.key)


def settled(fire: Fire, then: str, at: int) -> Settlement:
    entry = Entry(owner=fire.owner, key=fire.key, nominal_at=fire.nominal_at, at=at, happened="failed", fire_id=fire.id)
    return Settlement(Id(fire.owner, fire.key), fire, then, entry, at + 1 if then == "retry" else None)  # type: ignore[arg-type]


# Claims and leases.


@pytest.mark.parametrize("now", [NOW + timedelta(hours=1), NOW_MS + HOUR_MS], ids=["datetime", "milliseconds"])
async def test_a_claim_takes_what_is_due_as_a_fire_that_is_leased_for_a_minute(t: Tickler, now: datetime | int) -> None:
    await put(t, "digest")
    (claim,) = await t.fires.claim(now, worker="w1")
    assert (claim.schedule.id, claim.nominal_at, claim.due_at) == (Id("u1", "digest"), NOW_MS + HOUR_MS, NOW_MS + HOUR_MS)
    assert claim.fire == await t.fires.get(fire_id("u1", "digest", NOW_MS + HOUR_MS))
    assert claim.fire is not None
    assert (claim.fire.worker, claim.fire.deliver_after) == ("w1", NOW_MS + HOUR_MS + 60_000)
    assert await t.fires.claim(now, worker="w2") == await t.fires.lease(now, worker="w2") == []


async def test_a_claim_takes_no_more_than_asked_for_and_passes_over_owners(t: Tickler, clock: ManualClock) -> None:
    await put(t, *(f"k{n}" for n in range(5)))
    await put(t, "other", owner="u2")
    clock.advance(timedelta(hours=1))
    assert len(await t.fires.claim(clock.now_ms(), 2, worker="w1")) == 2
    assert [claim.schedule.owner for claim in await t.fires.claim(clock.now_ms(), worker="w1", except_owners=["u1"])] == ["u2"]
    assert len(await t.fires.claim(clock.now_ms(), worker="w1")) == 3


async def test_a_lease_that_was_extended_is_kept_for_so_long_and_those_that_are_lost_come_back(
    t: Tickler, clock: ManualClock
) -> None:
    await put(t, "a", "b")
    a, b = fires_of(await claimed(t, clock))
    assert await t.fires.extend([a, b], NOW + timedelta(hours=1, minutes=10)) == []
    assert await t.fires.lease(NOW + timedelta(hours=1, minutes=10) - timedelta(milliseconds=1), worker="w2") == []
    assert await t.fires.settle([settled(b, "dead", clock.now_ms())]) == []
    (taken,) = await t.fires.lease(NOW + timedelta(hours=1, minutes=10), worker="w2")
    assert taken.fire is not None
    assert (taken.fire.id, taken.fire.attempt, taken.fire.worker) == (a.id, 2, "w2")
    assert await t.fires.extend([a, b], NOW_MS + 9 * HOUR_MS) == [a, b]
    assert await t.fires.settle([settled(a, "done", clock.now_ms())]) == [a]


@pytest.mark.parametrize("limit", NO_LIMITS, ids=repr)
async def test_a_limit_that_is_none_is_refused_everywhere_and_nothing_is_taken(
    t: Tickler, clock: ManualClock, limit: int
) -> None:
    await put(t, "digest")
    at = NOW_MS + HOUR_MS
    for call in (
        t.fires.claim(at, limit, worker="w1"),
        t.fires.lease(at, limit, worker="w1"),
        t.fires.list(limit=limit),
        t.fires.history("u1", "digest", limit=limit),
    ):
        with pytest.raises(InvalidInput, match=rf"^limit: .* whole number from 1 to {MAX_LIMIT}"):
            await call
    assert len(await claimed(t, clock)) == 1


@pytest.mark.parametrize(("instant", "said"), NO_INSTANTS, ids=str)
async def test_what_is_no_instant_is_refused_by_its_name_and_nothing_is_taken(
    t: Tickler, clock: ManualClock, instant: int, said: str
) -> None:
    await put(t, "digest")
    with pytest.raises(InvalidInput, match=f"^now_ms: .*{said}"):
        await t.fires.claim(instant, worker="w1")
    with pytest.raises(InvalidInput, match=f"^now_ms: .*{said}"):
        await t.fires.lease(instant, worker="w1")
    (fire,) = fires_of(await claimed(t, clock))
    with pytest.raises(InvalidInput, match=f"^until: .*{said}"):
        await t.fires.extend([fire], instant)
    assert await t.fires.get(fire.id) == fire


# Lists.


async def walked(t: Tickler, limit: int, **given: str) -> list[Fire]:
    """All of a list, page by page."""
    found: list[Fire] = []
    after: str | None = None
    while True:
        page = await t.fires.list(limit=limit, after=after, **given)  # type: ignore[arg-type]  # its own names
        assert len(page.items) <= limit
        found += page.items
        if page.next is None:
            return found
        assert len(page.items) == limit, "only the last page may be short"
        after = page.next


async def test_pages_of_a_list_lead_from_one_to_the_next_and_the_last_has_no_next(t: Tickler, clock: ManualClock) -> None:
    await put(t, "a", "b", "c")
    await put(t, "d", owner="u2")
    for _ in range(2):
        await claimed(t, clock)
    everything = await walked(t, 1_000)
    assert len(everything) == 8
    assert everything == sorted(everything, key=lambda fire: (fire.nominal_at, fire.id))
    for limit in (1, 3, 4, 7, 8, 9):
        assert await walked(t, limit) == everything
    assert await walked(t, 2, owner="u1") == [fire for fire in everything if fire.owner == "u1"]
    assert await walked(t, 1, owner="u1", key="b") == [fire for fire in everything if fire.key == "b"]
    assert (await t.fires.list(limit=8)).next is None, "a page that is just full is the last"


async def test_a_cursor_leads_on_after_what_it_points_at_has_gone(t: Tickler, clock: ManualClock) -> None:
    await put(t, "a", "b", "c", "d")
    fires = sorted(fires_of(await claimed(t, clock)), key=lambda fire: fire.id)
    page = await t.fires.list(limit=2)
    await t.fires.settle([settled(fire, "done", clock.now_ms()) for fire in fires[:2]])
    assert (await t.fires.list(after=page.next)).items == fires[2:]


async def test_a_list_is_of_the_open_ones_unless_another_state_is_asked_for(t: Tickler, clock: ManualClock) -> None:
    await put(t, "a", "b", policy=Policy(overlap="wait"))
    a, _ = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(a, "dead", clock.now_ms())])
    await claimed(t, clock)
    found = {
        state: {(fire.key, fire.nominal_at) for fire in (await t.fires.list(state=state)).items} for state in get_args(FireState)
    }
    first, second = NOW_MS + HOUR_MS, NOW_MS + 2 * HOUR_MS
    assert found == {"open": {("b", first), ("a", second)}, "waiting": {("b", second)}, "dead": {("a", first)}}
    assert {(fire.key, fire.nominal_at) for fire in (await t.fires.list()).items} == found["open"]


@pytest.mark.parametrize("state", ["", "Open", "leased", "delivered", None, 1, ["open"]], ids=repr)
async def test_a_state_that_no_fire_has_is_refused_with_those_there_are(t: Tickler, state: str) -> None:
    with pytest.raises(InvalidInput, match=r"^state: .* is not one of open, waiting, dead"):
        await t.fires.list(state=state)  # type: ignore[arg-type]  # that is the point


async def test_a_key_without_an_owner_is_refused(t: Tickler) -> None:
    with pytest.raises(InvalidInput, match=r"^key: needs an owner"):
        await t.fires.list(key="digest")


@pytest.mark.parametrize(
    ("owner", "key", "field"),
    [("", None, "owner"), (5, None, "owner"), ("", "k", "owner"), ("u1", "", "key"), ("u1", "\0", "key")],
)
async def test_an_owner_or_a_key_that_nobody_could_have_is_refused(t: Tickler, owner: str, key: str | None, field: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"^{field}: "):
        await t.fires.list(owner=owner, key=key)
    if key is not None:
        with pytest.raises(InvalidSchedule, match=f"^{field}: "):
            await t.fires.history(owner, key)


@pytest.mark.parametrize("cursor", NO_CURSORS, ids=lambda cursor: repr(cursor)[:20])
async def test_a_cursor_that_no_page_gave_is_refused(t: Tickler, cursor: str) -> None:
    for call in (t.fires.list(after=cursor), t.fires.history("u1", "digest", after=cursor)):
        with pytest.raises(InvalidInput, match=r"^after: .* is not a cursor: pass the `next` of an earlier page"):
            await call


# History.


async def test_pages_of_the_history_lead_from_the_latest_to_the_first(t: Tickler, clock: ManualClock) -> None:
    await put(t, "digest")
    for times in (1, 1, 1, 1, 5):  # what happened in the same millisecond is told apart too
        (fire,) = fires_of(await claimed(t, clock))
        await t.fires.settle([settled(fire, "done", clock.now_ms()) for _ in range(times)])
    everything = (await t.fires.history("u1", "digest")).items
    assert len(everything) == 9
    assert [entry.at for entry in everything] == sorted((entry.at for entry in everything), reverse=True)
    for limit in (1, 2, 3, 4, 9):
        found: list[Entry] = []
        after: str | None = None
        pages = 0
        while pages == 0 or after is not None:
            page = await t.fires.history("u1", "digest", limit=limit, after=after)
            found += page.items
            after, pages = page.next, pages + 1
        assert (found, pages) == (everything, -(-9 // limit))


async def test_a_schedule_that_never_was_has_an_empty_history(t: Tickler) -> None:
    page = await t.fires.history("nobody", "nothing")
    assert (page.items, page.next) == ([], None)


async def test_what_happened_is_kept_for_as_long_as_was_said_at_connect(t: Tickler, clock: ManualClock) -> None:
    await put(t, "a", "b", "c", policy=Policy(missed="skip", grace=60))
    a, b, _ = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(a, "done", clock.now_ms())])
    await t.fires.settle([settled(b, "retry", clock.now_ms())])
    await t.fires.cancel(b.id)
    clock.advance(61)
    assert len(await t.fires.lease(clock.now_ms(), worker="w2")) == 1
    clock.set(NOW_MS + 3 * HOUR_MS + 120_000)
    assert await t.fires.claim(clock.now_ms(), worker="w1") == [], "all of them missed"
    assert [len((await t.fires.history("u1", key)).items) for key in "abc"] == [2, 3, 2]
    store = t._store.fires
    assert await store.prune(NOW_MS + HOUR_MS + KEPT_MS - 1) == 0
    assert await store.prune(NOW_MS + HOUR_MS + KEPT_MS) == 3, "delivered, failed and cancelled at the first hour"
    assert await store.prune(NOW_MS + HOUR_MS + 61_000 + KEPT_MS) == 1, "the lease that ran out"
    assert await store.prune(clock.now_ms() + KEPT_MS) == 3, "what was skipped"


# Sent again, and cancelled.


async def test_a_dead_fire_is_sent_again_from_now_on_and_comes_back_as_it_is(t: Tickler, clock: ManualClock) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(fire, "dead", clock.now_ms())])
    clock.advance(timedelta(minutes=5))
    found = await t.fires.retry(fire.id)
    assert found == await t.fires.get(fire.id)
    assert (found.state, found.attempt, found.deliver_after) == ("open", 0, clock.now_ms())
    with pytest.raises(FireNotFound):
        await t.fires.retry(fire.id)
    (again,) = fires_of(await t.fires.lease(clock.now_ms(), worker="w2"))
    assert (again.id, again.attempt) == (fire.id, 1)


@pytest.mark.parametrize(("by", "detail"), [(None, "by hand"), ("ada", "by ada")])
async def test_the_history_says_by_whom_a_fire_was_sent_again_or_cancelled(
    t: Tickler, clock: ManualClock, by: str | None, detail: str
) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(fire, "dead", clock.now_ms())])
    clock.advance(1)
    await t.fires.retry(fire.id, by=by)
    clock.advance(1)
    await t.fires.cancel(fire.id, by=by)
    cancelled, again, _ = (await t.fires.history("u1", "digest")).items
    assert [(entry.happened, entry.detail) for entry in (cancelled, again)] == [("cancelled", detail), ("retried", detail)]


@pytest.mark.parametrize(
    ("which", "sent"),
    [({}, ["u1/a", "u1/b", "u2/a"]), ({"owner": "u1"}, ["u1/a", "u1/b"]), ({"owner": "u1", "key": "b"}, ["u1/b"])],
    ids=["all", "an owner's", "a schedule's"],
)
async def test_every_dead_fire_is_sent_again_of_all_an_owner_or_a_schedule(
    t: Tickler, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, which: dict[str, str], sent: list[str]
) -> None:
    monkeypatch.setattr("tickler.fires.fires.RETRY_PAGE", 2)
    await put(t, "a", "b", "fine")
    await put(t, "a", owner="u2")
    for fire in fires_of(await claimed(t, clock)):
        await t.fires.settle([settled(fire, "retry" if fire.key == "fine" else "dead", clock.now_ms())])
    assert await t.fires.retry_all(**which, by="ada") == len(sent)
    again = [f"{fire.owner}/{fire.key}" for fire in (await t.fires.list()).items if fire.attempt == 0]
    assert sorted(again) == sent
    assert len((await t.fires.list(state="dead")).items) == 3 - len(sent)
    assert await t.fires.retry_all(**which) == 0
    assert await t.fires.retry_many(**which, most=1) == Retried({}, more=False)


async def test_who_sends_a_fire_again_has_a_name_that_fits(t: Tickler, clock: ManualClock) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(fire, "dead", clock.now_ms())])
    with pytest.raises(InvalidInput, match="by"):
        await t.fires.retry(fire.id, by="")
    assert (await t.fires.list(state="dead")).items != []


async def test_of_several_who_send_a_fire_again_at_once_one_does(t: Tickler, clock: ManualClock) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    await t.fires.settle([settled(fire, "dead", clock.now_ms())])
    answers = await asyncio.gather(*(t.fires.retry(fire.id) for _ in range(5)), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Fire"] + ["FireNotFound"] * 4


async def test_a_fire_that_is_not_dead_cannot_be_sent_again_and_the_error_says_where_to_look(
    t: Tickler, clock: ManualClock
) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    for id in (fire.id, "fire_of_nobody"):
        with pytest.raises(FireNotFound, match=r"no dead fire has this id: see fires.list\(state='dead'\)") as refused:
            await t.fires.retry(id)
        assert (refused.value.fire_id, str(refused.value).startswith(id)) == (id, True)
    assert await t.fires.get(fire.id) == fire


async def test_a_fire_that_a_worker_has_cannot_be_cancelled_and_one_that_waits_for_its_retry_can(
    t: Tickler, clock: ManualClock
) -> None:
    await put(t, "digest")
    (fire,) = fires_of(await claimed(t, clock))
    with pytest.raises(FireNotFound, match="a worker may have it") as refused:
        await t.fires.cancel(fire.id)
    assert isinstance(refused.value, LookupError)
    await t.fires.settle([settled(fire, "retry", clock.now_ms())])
    clock.advance(2)
    assert (await t.fires.cancel(fire.id)).id == fire.id
    latest = (await t.fires.history("u1", "digest")).items[0]
    assert (latest.happened, latest.fire_id, latest.at) == ("cancelled", fire.id, clock.now_ms())
    with pytest.raises(FireNotFound):
        await t.fires.cancel(fire.id)
    assert await t.fires.lease(clock.now_ms() + HOUR_MS // 2, worker="w1") == []


@pytest.mark.parametrize("id", ["", None, 5, b"fire_1", ["fire_1"]], ids=repr)
async def test_what_is_no_id_of_a_fire_is_refused(t: Tickler, id: str) -> None:
    for call in (t.fires.retry(id), t.fires.cancel(id)):
        with pytest.raises(InvalidInput, match=r"^fire_id: .* is not a fire id: pass one from fires.list"):
            await call


async def test_an_id_that_is_very_long_is_not_repeated_in_full(t: Tickler) -> None:
    with pytest.raises(InvalidInput) as refused:
        await t.fires.retry("x" * 100_000)
    assert len(str(refused.value)) < 200


async def test_a_fire_that_is_not_there_is_none(t: Tickler) -> None:
    assert await t.fires.get("fire_of_nobody") is None


# Ids.


def test_an_id_is_the_same_for_one_occurrence_everywhere_and_differs_for_any_other() -> None:
    id = fire_id("u1", "digest", NOW_MS)
    # Receivers know what they had by it, also after an upgrade: it may never change.
    assert id == "fire_01cc9a776c7bae36174c8f47af21cd4d"
    others = {
        fire_id("u2", "digest", NOW_MS),
        fire_id("u1", "digest2", NOW_MS),
        fire_id("u1", "digest", NOW_MS + 1),
        fire_id("u1", "digest", NOW_MS, triggered=True),
        fire_id("u1d", "igest", NOW_MS),
    }
    assert len(others - {id}) == 5


# What is refused.


@pytest.mark.parametrize("cursor", ["5-fire_ab", "9" * 150 + "-5", "5-" + "9" * 100, "5-\ud800", "5-\0"], ids=ascii)
async def test_a_history_cursor_that_no_history_page_gave_is_refused(sqlite_url: str, cursor: str) -> None:
    async with connect(sqlite_url) as t:
        with pytest.raises(InvalidInput, match=r"^after: "):
            await t.fires.history("u1", "digest", after=cursor)


@pytest.mark.parametrize("id", ["", "\ud800", "a\0b", [], None, 5])
async def test_what_is_no_id_is_refused(t: Tickler, id: str) -> None:
    for call in (t.fires.get(id), t.fires.retry(id), t.fires.cancel(id)):
        with pytest.raises(InvalidInput, match=r"^fire_id: "):
            await call


@pytest.mark.parametrize(
    ("worker", "lease_ms", "named"),
    [
        ("", 1, "worker"),
        ("a\0b", 1, "worker"),
        (None, 1, "worker"),
        ("w", 0, "lease_ms"),
        ("w", -5, "lease_ms"),
        ("w", 1.5, "lease_ms"),
        ("w", True, "lease_ms"),
    ],
)
async def test_a_lease_without_a_name_or_a_time_is_refused(t: Tickler, worker: str, lease_ms: int, named: str) -> None:
    for call in (
        t.fires.claim(t.now_ms(), worker=worker, lease_ms=lease_ms),
        t.fires.lease(t.now_ms(), worker=worker, lease_ms=lease_ms),
    ):
        with pytest.raises(InvalidInput, match=f"^{named}: "):
            await call
