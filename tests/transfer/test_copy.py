"""Copying a store with everything in it: to another kind of store, value by value the same, killed on the way or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tickler import (
    At,
    Cron,
    Delivery,
    Every,
    HttpTarget,
    IndexRow,
    InvalidInput,
    ManualClock,
    Policy,
    PythonTarget,
    Schedule,
    Tickler,
    Weekly,
    connect,
    new_key,
    new_secret,
)
from tickler.clock import to_datetime
from tickler.database.progress import no_progress
from tickler.errors import StoreUnavailable
from tickler.fires import Entry, Fire, Settlement
from tickler.fires.contract import next_at
from tickler.model.fire import Happened, fire_id
from tickler.model.record import Record
from tickler.model.schedule import Id
from tickler.records.kinds import OWN_KINDS
from tickler.records.worker_status import WorkerReport, report
from tickler.stores.contents import HistoryItem, RawSchedule
from tickler.stores.optional import contents_of
from tickler.stores.sqlite import SqliteStore
from tickler.transfer import copy as transfer_copy
from tickler.transfer.copy import PART_LABELS, PARTS, Comparison, Copy, digest_of

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
NAME = "store://source"
WORKS = PythonTarget("works")
FULL = Policy(overlap="wait")
SECRET = new_secret()
OWNERS = ("u1", "日本 🐌/%2F")

Connected = Callable[[str], Awaitable[Tickler]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", new_key())


@pytest.fixture
async def connected(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Connected]:
    """Opens an empty store: in memory, in a file, or at a URL."""
    async with AsyncExitStack() as stack:

        async def open(store: str) -> Tickler:
            files = len(list(tmp_path.glob("*.db")))
            url = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/{files}.db"}.get(store, store)
            return await stack.enter_async_context(connect(url, clock=clock, create=True))

        yield open


PAIRS = [("sqlite", "postgres"), ("postgres", "dynamodb"), ("dynamodb", "sqlite"), ("memory", "sqlite"), ("sqlite", "memory")]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Two stores of different kinds, as `connected` takes them."""
    first, second = (
        str(request.getfixturevalue(f"{kind}_url")) if kind in ("postgres", "dynamodb") else kind for kind in request.param
    )
    return first, second


# What is copied.


async def fill(t: Tickler, clock: ManualClock) -> None:
    """With a schedule in every state, a fire in every state, and an entry of every kind."""
    await _put_schedules(t)
    await _put_besides(t)
    clock.set(NOW_MS + HOUR_MS)
    await alter(t, "bad", when_text="61 * * * *")
    await _make_history(t, clock)
    await alter(t, "newer", format=99)
    await alter(t, "unindexed", standing="absent", next_fire_at=None)


async def alter(t: Tickler, key: str, **fields: object) -> None:
    """As only a foreign hand can."""
    (raw,) = [each for each in (await contents_of(t.store).schedules.walk(None, 1000))[0] if each.id == ("u1", key)]
    await contents_of(t.store).schedules.restore([replace(raw, **fields)])


async def execute(t: Tickler, sql: str) -> None:
    """Behind the back of an SQLite store."""
    assert isinstance(t.store, SqliteStore)
    await t.store._connection.write(lambda connection: connection.execute(sql))


async def _put_schedules(t: Tickler) -> None:
    hourly = Cron("0 * * * *", tz="Europe/Paris")
    at = At(to_datetime(NOW_MS + HOUR_MS))
    sealed = HttpTarget("https://example.org/hook", headers={"authorization": "Bearer very-secret"}, secret=SECRET)
    declared = [
        *(Schedule(owner=owner, key="hourly", when=hourly, target=WORKS, payload={"n": [1, None]}) for owner in OWNERS),
        Schedule(owner="u1", key="paused", when=hourly, target=WORKS),
        Schedule(owner="u1", key="off", when=hourly, enabled=False),
        Schedule(owner="u1", key="over", when=at, target=WORKS, delete_after=False),
        Schedule(owner="u1", key="once", when=At("2031-03-15T00:00:00", tz="America/Chicago"), target=WORKS),
        Schedule(owner="u1", key="bad", when=hourly, target=WORKS),
        Schedule(owner="u1", key="newer", when="0 0 1 1 *", target=WORKS),
        Schedule(owner="u1", key="unindexed", when="0 0 1 1 *", target=WORKS),
        Schedule(owner="u1", key="spread", when="0 */4 * * *", target=WORKS, policy=Policy(spread=1800)),
        Schedule(owner="u1", key="bounds", when=hourly, starts_at=NOW_MS + 5 * HOUR_MS, ends_at=NOW_MS + 9 * HOUR_MS),
        Schedule(owner="u1", key="sealed", when="0 0 1 1 *", target=sealed),
        Schedule(owner="u1", key="weekly", when=Weekly({"tue": ["09:00", "17:30"]}, tz="Asia/Tokyo")),
        Schedule(owner="u1", key="every", when=Every(hours=7), target=WORKS, payload="x" * 6000),
        Schedule(owner="u1", key="waits", when="*/30 * * * *", target=WORKS, policy=FULL),
        Schedule(owner="u1", key="skips", when="* * * * *", target=WORKS, policy=Policy(missed="skip", grace=1)),
    ]
    await t.schedules.put_many(declared)
    await t.schedules.put(replace(declared[0], payload={"n": [2, None]}))
    await t.schedules.pause("u1", "paused", reason="it answered 410 Gone")


async def _put_besides(t: Tickler) -> None:
    await t.secrets.put("u1", SECRET)
    await t.secrets.rotate("u1")
    await t.records.put("mine", "lasting", {"b": 1, "a": [2.5]})
    await t.records.put("mine", "lasting", {"b": 2, "a": [2.5]})
    await t.records.put("mine", "brief", 1, expires_at=NOW_MS + 30 * 24 * HOUR_MS)
    await t.records.put("mine", "too brief", 1, expires_at=NOW_MS + MINUTE_MS)
    stopped = WorkerReport(name="w0", doing="stopped", started_at=1, seen_at=NOW_MS)
    await report(t.store.records, stopped)
    await t.index.upsert_many([IndexRow("u2", f"row{n}", Cron("0 9 * * *"), NOW_MS + n * HOUR_MS, offset_ms=n) for n in range(5)])


async def _make_history(t: Tickler, clock: ManualClock) -> None:
    """At the first hour: delivered, failed, dead and sent again; later one that went away with its worker."""
    now_ms = clock.now_ms()
    claims = {
        (claim.schedule.owner, claim.schedule.key): claim.fire for claim in await t.fires.claim(now_ms, worker="w1") if claim.fire
    }
    hourly = claims["u1", "hourly"]
    await t.fires.settle([_settled(claims["u1", "over"], "done", "delivered"), _settled(hourly, "retry", "failed")])
    await t.fires.settle([_settled(claims[OWNERS[1], "hourly"], "dead", "failed")])
    lost = await t.trigger("u1", "spread")
    assert [claim.fire.id for claim in await t.fires.lease(now_ms, worker="w2", lease_ms=1000) if claim.fire] == [lost.id]
    clock.advance(2)
    again = await t.fires.lease(clock.now_ms(), worker="w1", lease_ms=10 * MINUTE_MS)
    assert [claim.fire.id for claim in again if claim.fire] == [lost.id], "and so it is leased now, for the second time"
    cancelled, dead = await t.trigger("u1", "every"), await t.trigger("u1", "sealed")
    await t.fires.cancel(cancelled.id, by="ann")
    (claim,) = await t.fires.lease(clock.now_ms(), worker="w1")
    assert claim.fire is not None
    await t.fires.settle([_settled(claim.fire, "dead", "failed")])
    await t.fires.retry(dead.id, by="ann")
    clock.set(NOW_MS + HOUR_MS + 30 * MINUTE_MS)
    await t.fires.claim(clock.now_ms(), worker="w1", except_owners=OWNERS[1:])  # the first that waits is still leased


def _settled(fire: Fire, then: str, happened: Happened) -> Settlement:
    entry = Entry(
        owner=fire.owner,
        key=fire.key,
        nominal_at=fire.nominal_at,
        at=fire.opened_at + 5,
        happened=happened,
        fire_id=fire.id,
        attempt=fire.attempt,
        detail=None if happened == "delivered" else "it answered 503 Service Unavailable",
        answer="ä\0",
        worker=fire.worker,
        gave_up=then == "dead",
    )
    deliver_after = fire.opened_at + 2 * HOUR_MS if then == "retry" else None
    return Settlement(Id(fire.owner, fire.key), fire, then, entry, deliver_after)  # type: ignore[arg-type]  # one of them


# What is there.


class Everything(msgspec.Struct):
    """All that people see of a store."""

    schedules: list[object]
    fires: list[Fire]
    history: dict[str, list[Entry]]
    records: list[Record]
    rows: list[object]
    counts: tuple[object, ...]


async def everything(t: Tickler) -> Everything:
    page = await t.schedules.list(limit=1000)
    fires = [fire for state in ("open", "waiting", "dead") for fire in (await t.fires.list(state=state, limit=1000)).items]
    history = {
        str(each.id): sorted((await t.fires.history(*each.id, limit=1000)).items, key=lambda entry: (entry.at, repr(entry)))
        for each in page.items
    }
    records = [record for kind in ("secret", "mine", "zone") for record in await t.records.list(kind, limit=1000)]
    rows = sorted((await t.index.walk(limit=1000))[0], key=lambda row: (row.owner, row.key))
    counts = (await t.index.count(), await t.index.next_due(), await t.index.set_aside(), await next_at(t.store.fires))
    return Everything(list(page.items), fires, history, records, list(rows), counts)


def copy_of(source: Tickler, target: Tickler, name: str = NAME) -> Copy:
    return Copy(source.store, target.store, name, source.now_ms, no_progress)


async def copied(source: Tickler, target: Tickler) -> list[Comparison]:
    copy = copy_of(source, target)
    await copy.begin()
    await copy.run()
    return await copy.compare()


def differing(found: list[Comparison]) -> list[str]:
    return [each.part for each in found if not each.same]


async def test_a_copy_is_value_by_value_what_it_was_copied_from(
    connected: Connected, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]
) -> None:
    monkeypatch.setattr(transfer_copy, "PAGE", 3)
    source, target = await connected(pair[0]), await connected(pair[1])
    await fill(source, clock)
    before = await everything(source)
    states = {each.state for each in before.schedules}  # type: ignore[attr-defined]
    assert states == {"active", "paused", "finished", "unreadable", "unindexed"}
    assert {(fire.state, fire.worker is None) for fire in before.fires} == {
        ("open", True),
        ("open", False),
        ("waiting", True),
        ("dead", True),
    }
    happened = {entry.happened for entries in before.history.values() for entry in entries}
    assert happened == {"delivered", "failed", "expired", "skipped", "cancelled", "retried"}
    assert differing(await copied(source, target)) == []
    after = await everything(target)
    for field in Everything.__struct_fields__:
        assert getattr(after, field) == getattr(before, field), field
    assert await everything(source) == before
    kinds = {record.kind for record in (await contents_of(target.store).records.walk(None, 1000))[0]}
    assert kinds.isdisjoint({"worker", "copy"})
    await _work_alike(source, target, clock)


async def _work_alike(source: Tickler, target: Tickler, clock: ManualClock) -> None:
    """What was open is delivered from the copy as it would have been from where it came."""
    clock.advance(HOUR_MS / 1000)
    delivered: dict[int, list[tuple[str, int]]] = {}
    for n, t in enumerate((source, target)):
        seen = delivered[n] = []

        def note(delivery: Delivery, seen: list[tuple[str, int]] = seen) -> None:
            seen.append((delivery.id, delivery.attempt))

        t.handler("works")(note)
        summary = await t.tick()
        assert summary.delivered == len(seen)
    assert sorted(delivered[0]) == sorted(delivered[1])
    assert len(delivered[0]) > 5
    assert {attempt for _, attempt in delivered[0]} >= {1, 2, 3}, "also what was tried before, and what was leased"


class _Cut(Copy):
    """Ends after the second page, which was written, and nobody knows it."""

    notes = 0
    has_run = False

    async def _save(self, progress: transfer_copy.Progress) -> None:
        self.notes += 1
        if self.notes == 2:
            raise StoreUnavailable("it was cut short")
        await super()._save(progress)

    async def run(self) -> None:
        await super().run()
        self.has_run = True


async def test_a_copy_can_go_on_after_every_page(
    connected: Connected, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short between the page and the note of it, again and again; each time by a new process, as it were."""
    monkeypatch.setattr(transfer_copy, "PAGE", 4)
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    cut = 0
    copy = _Cut(source.store, target.store, NAME, source.now_ms, no_progress)
    while not copy.has_run:
        copy = _Cut(source.store, target.store, NAME, source.now_ms, no_progress)
        await copy.begin()
        assert copy.is_resumed is (cut > 0)
        try:
            await copy.run()
        except StoreUnavailable:
            cut += 1
    assert cut > 8
    last = copy_of(source, target)
    await last.begin()
    assert differing(await last.compare()) == []
    assert await everything(target) == await everything(source)


async def test_entries_that_say_the_same_are_one(connected: Connected, clock: ManualClock) -> None:
    """Whoever settles again, since the answer was lost, leaves two; stores that name entries by what they say have one."""
    source, target = await connected("sqlite"), await connected("memory")
    await source.schedules.put(Schedule(owner="u1", key="hourly", when="@hourly", target=WORKS))
    clock.advance(HOUR_MS / 1000)
    (claim,) = await source.fires.claim(clock.now_ms(), worker="w1")
    assert claim.fire is not None
    for _ in range(2):
        await source.fires.settle([_settled(claim.fire, "done", "delivered")])
    assert len((await source.fires.history("u1", "hourly")).items) == 2
    found = {each.part: each for each in await copied(source, target)}
    assert (found["history"].same, found["history"].source.count) == (True, 1)
    assert len((await target.fires.history("u1", "hourly")).items) == 1


# What is compared.


@pytest.mark.parametrize("part", ["schedules", "rows", "fires", "history", "records"])
async def test_a_difference_is_found_and_mended_by_another_run(connected: Connected, clock: ManualClock, part: str) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    copy = copy_of(source, target)
    await copy.begin()
    await copy.run()
    if part == "schedules":
        await alter(target, "hourly", next_fire_at=NOW_MS + 9 * HOUR_MS)
    elif part == "rows":
        await target.index.remove("u2", "row0")
    elif part == "fires":
        await execute(target, "DELETE FROM tickler_fires WHERE state = 'dead'")
    elif part == "history":
        await execute(target, "UPDATE tickler_history SET entry = replace(entry, '503', '502')")
    else:
        await target.records.put("mine", "lasting", {"b": 2, "a": [2.25]})
    assert differing(await copy.compare()) == [part]
    again = copy_of(source, target)
    await again.begin()
    assert not again.is_resumed, "it begins anew"
    await again.run()
    if part == "history":  # what only the target says is not taken away
        assert differing(await again.compare()) == ["history"]
        await execute(target, "DELETE FROM tickler_history WHERE entry LIKE '%502%'")
    assert differing(await again.compare()) == []
    assert await everything(target) == await everything(source)


FIRE = Fire(id="a", owner="o", key="k", nominal_at=1, opened_at=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            Fire(id="a", owner="o", key="k", nominal_at=1, opened_at=1),
            Fire(id="a", owner="o", key="k", nominal_at=1, opened_at=2),
        ),
        (Record("k", "n", {"a": 1, "b": 2}, 1), Record("k", "n", {"a": 1, "b": 3}, 1)),
        (Record("k", "n", 1, 1), Record("k", "n", 1, 2)),
        (RawSchedule(owner="o", key="k", when_text="a", tz="UTC"), RawSchedule(owner="o", key="k", when_text="b", tz="UTC")),
        (
            RawSchedule(owner="o", key="k", when_text="a", tz="UTC", body='{"a":1}'),
            RawSchedule(owner="o", key="k", when_text="a", tz="UTC", body='{"a":2}'),
        ),
    ],
)
def test_things_that_differ_have_other_checksums(one: Fire, other: Fire) -> None:
    assert digest_of(one) == digest_of(one)
    assert digest_of(one) != digest_of(other)


def test_what_stores_keep_in_their_own_way_is_the_same_to_the_checksum() -> None:
    """The order of a body's fields, the end of a long reason, and milliseconds of an expiry."""
    raw = RawSchedule(owner="o", key="k", when_text="a", tz="UTC", body='{"a":1,"b":[2]}')
    assert digest_of(raw) == digest_of(replace(raw, body='{"b":[2],"a":1}'))
    assert digest_of(replace(FIRE, reason="x" * 200)) == digest_of(replace(FIRE, reason="x" * 80))
    entry = Entry(owner="o", key="k", nominal_at=1, at=1, happened="delivered")
    assert digest_of(HistoryItem(entry, 1001)) == digest_of(HistoryItem(entry, 2000))
    assert digest_of(HistoryItem(entry, 1001)) != digest_of(HistoryItem(entry, 2001))


async def test_what_has_expired_stays_behind(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    clock.set(NOW_MS + 40 * 24 * HOUR_MS)
    found = {each.part: each for each in await copied(source, target)}
    assert differing(list(found.values())) == []
    assert found["history"].source.count == 0
    assert await target.records.get("mine", "brief") is None


def test_of_every_kind_of_record_it_is_decided_whether_it_is_copied() -> None:
    assert set(OWN_KINDS) >= transfer_copy.NOT_COPIED
    assert set(OWN_KINDS) - transfer_copy.NOT_COPIED == {"zone", "secret", "token", "audit", "server", "send"}, (
        "or add it to NOT_COPIED"
    )


# What is refused.


async def test_a_target_that_is_not_empty_is_refused_unless_it_is_wanted(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("sqlite"), await connected("memory")
    await source.schedules.put(Schedule(owner="u1", key="hourly", when="@hourly", payload="source"))
    await target.schedules.put(Schedule(owner="u1", key="hourly", when="@daily", payload="target"))
    await target.schedules.put(Schedule(owner="u1", key="own", when="@hourly"))
    with pytest.raises(InvalidInput, match=r"the target is not empty: it has schedules.*--into-existing"):
        await copy_of(source, target).begin()
    copy = copy_of(source, target)
    await copy.begin(into_existing=True)
    await copy.run()
    assert differing(await copy.compare()) == []
    page = await target.schedules.list()
    assert [(each.key, each.payload) for each in page.items] == [("hourly", "source"), ("own", None)]


@pytest.mark.parametrize("what", ["rows", "fires", "history"])
async def test_a_target_with_anything_in_it_is_not_empty(connected: Connected, clock: ManualClock, what: str) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    contents = contents_of(target.store)
    if what == "rows":
        await target.index.upsert(IndexRow("u1", "row", Cron("0 9 * * *"), NOW_MS))
    elif what == "fires":
        await contents.fires.restore([Fire(id="f", owner="o", key="k", nominal_at=1, opened_at=1, deliver_after=1)])
    else:
        entry = Entry(owner="o", key="k", nominal_at=1, at=1, happened="delivered")
        await contents.history.restore([HistoryItem(entry, NOW_MS + HOUR_MS)])
    with pytest.raises(InvalidInput, match="the target is not empty"):
        await copy_of(source, target).begin()


async def test_a_copy_of_another_store_is_not_gone_on_with(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    copy = copy_of(source, target)
    await copy.begin()
    await copy.run()
    with pytest.raises(InvalidInput, match="not from an unfinished copy of store://other"):
        await copy_of(source, target, "store://other").begin()
    await copy.compare()
    with pytest.raises(InvalidInput, match=NAME):  # it is over: who runs it now would set back what workers did since
        await copy_of(source, target).begin()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("schedule", "schedule u1/hourly was changed in it"),
        ("worker", "worker host:1 ran on it"),
        ("deed", "ada deleted u1/hourly"),
    ],
)
async def test_a_target_that_was_used_since_it_differed_is_not_set_back_unasked(
    connected: Connected, clock: ManualClock, what: str, said: str
) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    await differing_copy(source, target)
    clock.advance(60)
    if what == "schedule":
        await target.schedules.pause("u1", "hourly")
    elif what == "worker":
        stopped = WorkerReport(name="host:1", doing="stopped", started_at=1, seen_at=clock.now_ms())
        await report(target.store.records, stopped)
    else:
        await target.audit.record("ada", "deleted", owner="u1", key="hourly")
    with pytest.raises(InvalidInput, match=rf"was used after .*: {said}; name an empty store, or pass --into-existing"):
        await copy_of(source, target).begin()
    again = copy_of(source, target)
    await again.begin(into_existing=True)
    await again.run()
    assert differing(await again.compare()) == []


async def test_what_came_from_the_source_since_does_not_count_as_a_change(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    copy = copy_of(source, target)
    await copy.begin()
    clock.advance(60)
    await source.schedules.pause("u1", "hourly")
    await source.audit.record("ada", "paused", owner="u1", key="hourly")
    await copy.run()
    await target.index.remove("u2", "row0")
    assert differing(await copy.compare()) == ["rows"]
    again = copy_of(source, target)
    await again.begin()
    await again.run()
    assert differing(await again.compare()) == []


async def test_a_copy_that_nobody_goes_on_with_is_forgotten_after_a_day(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    await differing_copy(source, target)
    clock.advance(25 * 3600)
    with pytest.raises(InvalidInput, match="not from an unfinished copy"):
        await copy_of(source, target).begin()


async def differing_copy(source: Tickler, target: Tickler) -> None:
    copy = copy_of(source, target)
    await copy.begin()
    await copy.run()
    await target.index.remove("u2", "row0")
    assert differing(await copy.compare()) == ["rows"]


async def test_a_store_is_not_copied_into_itself_whatever_it_is_called(connected: Connected, clock: ManualClock) -> None:
    source = await connected("sqlite")
    await source.schedules.put(Schedule(owner="u1", key="hourly", when="@hourly"))
    with pytest.raises(InvalidInput, match="are the same store"):
        await copy_of(source, source).begin(into_existing=True)
    assert await source.store.records.list("copy", now_ms=source.now_ms()) == []


@pytest.mark.parametrize("which", ["source", "target"])
async def test_workers_that_are_alive_are_named(connected: Connected, clock: ManualClock, which: str) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    busy = {"source": source, "target": target}[which]
    await report(busy.store.records, WorkerReport(name="host:1", doing="working", started_at=1, seen_at=NOW_MS))
    with pytest.raises(InvalidInput, match=rf"1 worker is running on the {which}, such as host:1.*--while-workers-run"):
        await copy_of(source, target).begin()
    await copy_of(source, target).begin(while_workers_run=True)
    clock.advance(70)
    await copy_of(source, target).begin()


async def test_of_two_copies_at_once_one_gives_way(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("memory"), await connected("sqlite")
    await fill(source, clock)
    first, second = copy_of(source, target), copy_of(source, target)
    await first.begin()
    await second.begin()
    await first.run()
    with pytest.raises(StoreUnavailable, match="another copy of store://source into the same store is running"):
        await second.run()
    assert differing(await first.compare()) == []


async def test_progress_is_reported_for_each_part(connected: Connected, clock: ManualClock) -> None:
    source, target = await connected("sqlite"), await connected("memory")
    await fill(source, clock)
    reported: list[tuple[object, ...]] = []
    copy = Copy(source.store, target.store, NAME, source.now_ms, lambda *each: reported.append(each))
    await copy.begin()
    await copy.run()
    found = {each.part: each for each in await copy.compare()}
    for part in PARTS:
        copied_, compared = (
            [each for each in reported if each[0] == f"{PART_LABELS.get(part, part)} {phase}"] for phase in ("copied", "compared")
        )
        assert copied_[-1][1] == copied_[-1][2] == found[part].source.count or part == "records"
        assert compared[-1][1] == compared[-1][2]


# Killed.

SLOWLY = "import sys, tickler.transfer.copy as c; c.PAGE = 20; from tickler.cli import main; main()"
SCHEDULES, ENTRIES = 400, 3000


async def test_a_copy_that_is_killed_goes_on_and_nothing_is_doubled(tmp_path: Path, postgres_url: str) -> None:
    url = f"sqlite:///{tmp_path}/source.db"
    async with connect(url) as source:
        await _fill_much(source)
    command = [sys.executable, "-c", SLOWLY, "copy", url, postgres_url, "--json"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    async with connect(postgres_url) as target:
        for part in ("schedules", "fires", "history"):
            with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                await _until_at(target, part)
                assert process.poll() is None, "it should be under way"
                process.send_signal(signal.SIGKILL)
            assert process.returncode == -signal.SIGKILL
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        answer = msgspec.json.decode(done.stdout)
        assert (answer["same"], answer["resumed"]) == (True, True)
        assert {each["part"]: each["to"]["count"] for each in answer["parts"] if each["part"] != "records"} == {
            "schedules": SCHEDULES,
            "rows": 0,
            "fires": SCHEDULES,
            "history": ENTRIES,
        }
        counts = [await getattr(contents_of(target.store), part).count() for part in ("schedules", "fires", "history")]
        assert counts == [SCHEDULES, SCHEDULES, ENTRIES]
        assert await target.store.records.list("copy", now_ms=target.now_ms()) == []


async def _fill_much(t: Tickler) -> None:
    await t.schedules.put_many(Schedule(owner=f"u{n % 7}", key=f"k{n}", when="0 0 1 1 *", target=WORKS) for n in range(SCHEDULES))
    now_ms = t.now_ms()
    ids = [Id(f"u{n % 7}", f"k{n}") for n in range(SCHEDULES)]
    await contents_of(t.store).fires.restore(
        [
            Fire(id=fire_id(*id, now_ms), owner=id.owner, key=id.key, nominal_at=now_ms, opened_at=now_ms, deliver_after=now_ms)
            for id in ids
        ]
    )
    past = [
        Entry(owner=f"u{n % 7}", key=f"k{n % SCHEDULES}", nominal_at=now_ms, at=now_ms + n, happened="delivered", attempt=1)
        for n in range(ENTRIES)
    ]
    await contents_of(t.store).history.restore([HistoryItem(entry, now_ms + 90 * 24 * HOUR_MS) for entry in past])


async def _until_at(target: Tickler, part: str) -> None:
    """Until a copy has come to a part, as far as it says."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for record in await target.store.records.list("copy", now_ms=target.now_ms()):
            if part in msgspec.convert(record.value, transfer_copy.Progress).parts:
                return
    raise TimeoutError(f"the copy never came to the {part}")
