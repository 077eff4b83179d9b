"""Conformance kit of the raw contents of a store: walked completely, and restored exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from tickler.errors import InvalidInput, ManagedRow
from tickler.fires.contract import FireStore
from tickler.index.advance import ROW_FORMAT
from tickler.model.fire import Entry, Fire, fire_id
from tickler.model.index_row import IndexRow
from tickler.model.record import Record
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.stores.contents import Contents, HistoryItem, Part, RawSchedule
from tickler.stores.optional import contents_of
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import LEASE_MS, FireFixtures, Worker, put_and_claim, triggered
from tickler.testing.fire_queries import entries, fires_of, happenings, keys, listed, nominals
from tickler.testing.hourly import HOOK, HOURLY, SPREAD, hour, schedule
from tickler.testing.settlements import dead, done, retry
from tickler.testing.store_contract import NOW_MS
from tickler.when import Unreadable

T = TypeVar("T")

TARGET = f'"target":{{"type":"http","url":"{HOOK}"}}'
ACTIVE = RawSchedule(
    owner="u1",
    key="digest",
    when_text="0 * * * *",
    tz="UTC",
    version=7,
    created_at=NOW_MS - 5,
    updated_at=NOW_MS - 3,
    body=f"{{{TARGET}}}",
    standing="indexed",
    next_fire_at=hour(1),
)
PAUSED = replace(
    ACTIVE, enabled=False, standing="absent", next_fire_at=None, body=f'{{{TARGET},"paused_because":"it answered 410"}}'
)
SPREAD_OUT = replace(
    ACTIVE,
    body=f'{{{TARGET},"policy":{{"spread":1800}},"ends_at":{hour(9)}}}',
    next_fire_at=hour(1) + 60_000,
    ends_at=hour(9),
    offset_ms=60_000,
)
SET_ASIDE = replace(SPREAD_OUT, when_text="61 * * * *", standing="unreadable", reason="minute of '61 * * * *': no")
ROW = RawSchedule(
    owner="u2", key="row", when_text="0 * * * *", tz="Europe/Paris", standing="indexed", next_fire_at=hour(2), ends_at=hour(8)
)
RAW = {
    "active": ACTIVE,
    "paused": PAUSED,
    "finished": replace(ACTIVE, standing="finished", next_fire_at=None),
    "unindexed": replace(ACTIVE, standing="absent", next_fire_at=None),
    "spread, with an end": SPREAD_OUT,
    "unreadable": SET_ASIDE,
    "of a newer format": replace(ACTIVE, when_text="phase(moon)", format=ROW_FORMAT + 1),
    "with more in it than is known": replace(ACTIVE, body=f'{{{TARGET},"mood":[1,2.50]}}'),
    "with a body that does not read": replace(ACTIVE, body='{"target":'),
    "with a large body": replace(ACTIVE, body=f'{{{TARGET},"payload":"{"x" * 5000}"}}'),
    "without a target": replace(ACTIVE, body="{}"),
}
ROWS = {
    "in the index": ROW,
    "spread": replace(ROW, offset_ms=1_000, next_fire_at=hour(2) + 1_000),
    "unreadable": replace(ROW, when_text="never", standing="unreadable", reason="never: does not read"),
    "of a newer format": replace(ROW, when_text="phase(moon)", format=ROW_FORMAT + 1),
}
WAITING = replace(triggered(at=hour(3)), state="waiting", deliver_after=None)
FIRES = [
    triggered(at=hour(1)),
    replace(triggered(at=hour(2)), attempt=2, deliver_after=hour(5), worker="w1"),
    WAITING,
    replace(triggered(at=hour(4)), attempt=8, state="dead", deliver_after=None, reason="it answered 410"),
]


def history_item(n: int, key: str = "digest") -> HistoryItem:
    """A history entry whose expiry is a whole second."""
    entry = Entry(owner="u1", key=key, nominal_at=hour(n), at=hour(n) + 7, happened="delivered", attempt=n, answer="ä\0")
    return HistoryItem(entry, hour(1000 + n))


async def all_of(part: Part[T], limit: int = 1000) -> list[T]:
    """Return all items of a walk, page by page."""
    found: list[T] = []
    page, cursor = await part.walk(None, limit)
    found += page
    while cursor is not None:
        page, cursor = await part.walk(cursor, limit)
        found += page
    return found


def fields(raw: RawSchedule) -> tuple[RawSchedule, object]:
    """Return a schedule without its body, and the fields of the body, in any order."""
    try:
        body: object = msgspec.json.decode(raw.body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        body = raw.body
    return replace(raw, body=""), body


def place(fire: Fire) -> tuple[int, str]:
    return fire.nominal_at, fire.id


class ContentsContract(FireFixtures):
    """What a store must do that implements `HasContents`."""

    @pytest.fixture
    def contents(self, store: Store) -> Contents:
        return contents_of(store)

    # Schedules.

    @pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
    async def test_a_schedule_is_restored_as_it_lay_elsewhere(self, contents: Contents, raw: RawSchedule) -> None:
        await contents.schedules.restore([raw])
        (found,) = await all_of(contents.schedules)
        assert fields(found) == fields(raw)
        assert await all_of(contents.rows) == []

    async def test_a_schedule_that_was_restored_is_what_it_was(
        self, contents: Contents, schedules: Schedules, store: Store
    ) -> None:
        raws = {name: replace(raw, key=name) for name, raw in RAW.items()}
        await contents.schedules.restore(list(raws.values()))
        found = {each.key: each for each in (await schedules.list(owner="u1", limit=100)).items}
        states = {name: each.state for name, each in found.items()}
        assert states == dict.fromkeys(RAW, "active") | {
            "paused": "paused",
            "finished": "finished",
            "unindexed": "unindexed",
            "unreadable": "unreadable",
            "with a body that does not read": "unreadable",
        }
        assert {(each.version, each.created_at, each.updated_at) for each in found.values()} == {(7, NOW_MS - 5, NOW_MS - 3)}
        assert found["active"].next_fire_at == hour(1)
        assert found["paused"].reason == "it answered 410"
        assert found["unreadable"].reason == SET_ASIDE.reason
        assert isinstance(found["unreadable"].when, Unreadable)
        assert found["with more in it than is known"].newer
        assert found["with a large body"].payload == "x" * 5000
        for state in ("active", "paused", "finished", "unreadable", "unindexed"):
            wanted = {name for name, each in found.items() if each.state == state and name != "with a body that does not read"}
            page = await schedules.list(state=state, limit=100)
            assert {each.key for each in page.items} - {"with a body that does not read"} == wanted
        aside = await store.index.set_aside()
        assert [(each.key, each.next_fire_at, each.reason, each.managed) for each in aside] == [
            ("unreadable", SET_ASIDE.next_fire_at, SET_ASIDE.reason, True)
        ]

    async def test_a_schedule_that_was_restored_is_claimed_as_it_would_have_been(
        self, contents: Contents, worker: Worker, store: Store
    ) -> None:
        names = ("active", "paused", "finished", "unindexed", "spread, with an end", "without a target")
        await contents.schedules.restore([replace(RAW[name], key=name) for name in names])
        assert keys(await worker.claim(hour(1))) == ["active"]
        (claim,) = await worker.claim(hour(1) + 60_000)
        assert (claim.schedule.key, claim.nominal_at, claim.due_at) == ("spread, with an end", hour(1), hour(1) + 60_000)
        assert [row.key for row in await store.index.claim_due(hour(1.5))] == ["without a target"]

    async def test_a_body_that_does_not_read_is_set_aside_by_who_claims_it(
        self, contents: Contents, worker: Worker, store: Store
    ) -> None:
        await contents.schedules.restore([RAW["with a body that does not read"]])
        assert await worker.claim(hour(1)) == []
        assert [aside.key for aside in await store.index.set_aside()] == ["digest"]

    async def test_one_that_was_set_aside_comes_back_when_it_reads(
        self, contents: Contents, worker: Worker, store: Store
    ) -> None:
        await contents.schedules.restore([replace(SET_ASIDE, when_text="0 * * * *")])
        assert await store.index.restore() == 1
        assert nominals(await worker.claim(hour(1) + 60_000)) == [hour(1)]

    @pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
    async def test_what_is_there_is_replaced_and_owes_what_it_owed(
        self, contents: Contents, schedules: Schedules, fires: FireStore, worker: Worker, raw: RawSchedule
    ) -> None:
        await schedules.put(schedule(payload="y" * 3000, policy=SPREAD, ends_at=hour(50)))
        opened = fires_of(await worker.claim(hour(2)))
        assert len(opened) == 1
        for _ in range(2):
            await contents.schedules.restore([raw])
            (found,) = await all_of(contents.schedules)
            assert fields(found) == fields(raw)
        assert await listed(fires, "open") == opened

    async def test_what_is_declared_is_given_as_it_lies(self, contents: Contents, schedules: Schedules) -> None:
        await schedules.put(schedule(payload={"n": 1}))
        await schedules.put(schedule("paused", enabled=False))
        await schedules.pause("u1", "paused", reason="no")
        found = {raw.key: raw for raw in await all_of(contents.schedules)}
        assert found["digest"].when_text == "0 * * * *"
        assert (found["digest"].version, found["digest"].standing) == (1, "indexed")
        assert found["digest"].next_fire_at == hour(1)
        assert (found["paused"].standing, found["paused"].enabled) == ("absent", False)
        assert fields(found["digest"])[1] == fields(replace(ACTIVE, body=f'{{{TARGET},"payload":{{"n":1}}}}'))[1]

    # Index rows without a schedule.

    @pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
    async def test_a_row_is_restored_as_it_lay_elsewhere(self, contents: Contents, row: RawSchedule) -> None:
        for _ in range(2):
            await contents.rows.restore([row])
            assert await all_of(contents.rows) == [row]
        assert await all_of(contents.schedules) == []

    async def test_a_row_that_was_restored_is_claimed_from_the_index_and_no_runner_gets_it(
        self, contents: Contents, worker: Worker, store: Store
    ) -> None:
        await contents.rows.restore([ROW])
        assert await worker.claim(hour(2)) == []
        (claimed,) = await store.index.claim_due(hour(2))
        assert (claimed.owner, claimed.key, claimed.next_fire_at, claimed.ends_at) == ("u2", "row", hour(2), hour(8))
        (left,) = await all_of(contents.rows)
        assert left.next_fire_at == hour(3)

    async def test_a_row_that_is_over_is_not_among_them(self, contents: Contents, store: Store) -> None:
        await store.index.upsert_many([IndexRow("u1", "row", HOURLY, hour(1), ends_at=hour(1))])
        assert len(await store.index.claim_due(hour(1))) == 1
        assert await all_of(contents.rows) == []

    async def test_a_schedule_takes_a_row_over_and_a_row_is_refused_where_there_is_a_schedule(
        self, contents: Contents, schedules: Schedules
    ) -> None:
        row = replace(ROW, owner="u1", key="digest")
        await contents.rows.restore([row])
        await contents.schedules.restore([ACTIVE])
        assert await all_of(contents.rows) == []
        with pytest.raises(ManagedRow):
            await contents.rows.restore([row])
        (found,) = await all_of(contents.schedules)
        assert fields(found) == fields(ACTIVE)
        assert (await schedules.list()).items[0].state == "active"

    # Fires.

    async def test_fires_are_restored_as_they_were_and_once(self, contents: Contents, fires: FireStore) -> None:
        await contents.schedules.restore([ACTIVE])
        for _ in range(2):
            await contents.fires.restore(FIRES)
            assert sorted(await all_of(contents.fires), key=place) == FIRES
        for fire in FIRES:
            assert await fires.get(fire.id) == fire
            assert fire in await listed(fires, fire.state, "digest")

    async def test_fires_that_were_restored_are_worked_on_as_they_would_have_been(
        self, contents: Contents, fires: FireStore, worker: Worker
    ) -> None:
        """A leased fire becomes available at the end of its lease: no worker can settle it before."""
        await contents.schedules.restore([RAW["paused"]])
        await contents.fires.restore(FIRES)
        (first,) = fires_of(await worker.lease(hour(4)))
        assert (first.id, first.attempt) == (FIRES[0].id, 1)
        (second,) = fires_of(await worker.lease(hour(5)))[-1:]
        assert (second.id, second.attempt) == (FIRES[1].id, 3)
        assert ("expired", hour(2)) in await happenings(fires)
        await worker.settle(hour(5), done(second, hour(5)))
        for fire in fires_of(await worker.lease(hour(5) + LEASE_MS)):
            await worker.settle(hour(5), done(fire, hour(5)))
        (third,) = fires_of(await worker.lease(hour(6)))
        assert third.id == WAITING.id
        await worker.settle(hour(6), done(third, hour(6)))
        assert await all_of(contents.fires) == FIRES[3:]

    async def test_a_fire_that_is_there_is_left_alone_whatever_became_of_it(
        self, contents: Contents, fires: FireStore, worker: Worker
    ) -> None:
        await contents.schedules.restore([ACTIVE])
        await contents.fires.restore(FIRES[:1])
        (leased,) = fires_of(await worker.lease(hour(1)))
        await contents.fires.restore(FIRES[:1])
        assert await all_of(contents.fires) == [leased]
        await worker.settle(hour(1), dead(leased, hour(1)))
        await contents.fires.restore(FIRES[:1])
        assert [fire.state for fire in await all_of(contents.fires)] == ["dead"]

    async def test_many_fires_of_one_schedule_are_restored(self, contents: Contents, fires: FireStore) -> None:
        await contents.schedules.restore([ACTIVE])
        many = [replace(triggered(at=hour(n)), state="open" if n % 2 else "dead") for n in range(120)]
        many = [fire if fire.state == "open" else replace(fire, deliver_after=None, reason="no") for fire in many]
        await contents.fires.restore(many)
        assert sorted(await all_of(contents.fires, limit=50), key=place) == many
        assert len(await listed(fires, "open")) == 60

    async def test_a_fire_whose_schedule_is_gone_is_cancelled_by_who_leases_it(
        self, contents: Contents, fires: FireStore, worker: Worker
    ) -> None:
        await contents.fires.restore(FIRES[:1])
        assert await worker.lease(hour(1)) == []
        assert await happenings(fires) == [("cancelled", hour(1))]
        assert await all_of(contents.fires) == []

    async def test_what_runs_is_given_as_it_lies(self, contents: Contents, schedules: Schedules, worker: Worker) -> None:
        await schedules.put_many([schedule("a"), schedule("b")])
        leased = fires_of(await worker.claim(hour(1)))
        assert sorted(await all_of(contents.fires), key=lambda fire: fire.key) == sorted(leased, key=lambda fire: fire.key)
        await worker.settle(hour(1), retry(leased[0], hour(1), hour(2)))
        found = {fire.id: fire for fire in await all_of(contents.fires)}
        assert (found[leased[0].id].worker, found[leased[0].id].deliver_after) == (None, hour(2))

    # History.

    async def test_entries_are_restored_as_they_were_and_once(self, contents: Contents, fires: FireStore) -> None:
        restored = [history_item(1), history_item(2), history_item(1, "other"), history_item(3)]
        for _ in range(2):
            await contents.history.restore(restored)
            found = await all_of(contents.history, limit=2)
            assert (len(found), set(found)) == (4, set(restored))
        assert await entries(fires) == [history_item(3).entry, history_item(2).entry, history_item(1).entry]

    async def test_what_happened_is_given_with_until_when_it_is_kept(
        self, contents: Contents, schedules: Schedules, worker: Worker
    ) -> None:
        fire = await put_and_claim(schedules, worker)
        settled = done(fire, hour(1))
        await worker.settle(hour(1), settled)
        (found,) = await all_of(contents.history)
        assert found.entry == settled.entry
        assert found.expires_at == NOW_MS + 30 * 86_400_000
        await contents.history.restore([found])
        assert await all_of(contents.history) == [found], "it says the same as one that is there"

    async def test_the_history_of_a_schedule_comes_together_by_its_instants(self, contents: Contents) -> None:
        restored = [history_item(n, key) for n in (3, 1, 2) for key in ("a", "b", "c")]
        await contents.history.restore(restored)
        found = await all_of(contents.history, limit=2)
        by_key = [each.entry.key for each in found]
        assert all(by_key[n : n + 3] == [by_key[n]] * 3 for n in (0, 3, 6))
        assert [each.entry.at for each in found] == [hour(n) + 7 for n in (1, 2, 3)] * 3

    # Records.

    async def test_records_are_restored_with_version_and_expiry(self, contents: Contents, store: Store) -> None:
        before = await all_of(contents.records)
        restored = [
            Record("token", "ä", {"b": [1, None, 2.5], "a": "\0"}, 7, None),
            Record("token", "b", "text", 1, hour(5)),
            Record("other", "b", 1 << 70, 3, NOW_MS - 1),
        ]
        for _ in range(2):
            await contents.records.restore(restored)
            found = [record for record in await all_of(contents.records, limit=2) if record not in before]
            assert sorted(found, key=lambda record: record.version) == sorted(restored, key=lambda record: record.version)
        assert await store.records.get("token", "ä", now_ms=NOW_MS) == restored[0]
        assert await store.records.get("other", "b", now_ms=NOW_MS) is None
        assert await store.records.put("token", "ä", b"1", now_ms=NOW_MS, expected=7) == 8
        await contents.records.restore([replace(restored[1], expires_at=None)])
        assert await store.records.get("token", "b", now_ms=hour(6)) == replace(restored[1], expires_at=None)

    # Walks.

    async def test_a_walk_meets_everything_once_in_pages(self, contents: Contents) -> None:
        raws = [replace(ACTIVE, owner=f"u{n % 3}", key=f"k{n}") for n in range(10)]
        await contents.schedules.restore(raws)
        await contents.rows.restore([replace(ROW, key=f"r{n}") for n in range(5)])
        await contents.fires.restore([_opened(raw.id) for raw in raws])
        for limit in (1, 3, 1000):
            assert _ids(await all_of(contents.schedules, limit)) == sorted(raw.id for raw in raws)
            assert _ids(await all_of(contents.rows, limit)) == [Id("u2", f"r{n}") for n in range(5)]
            assert sorted(Id(fire.owner, fire.key) for fire in await all_of(contents.fires, limit)) == sorted(
                raw.id for raw in raws
            )

    async def test_counts_are_right_or_none(self, contents: Contents) -> None:
        await contents.schedules.restore([ACTIVE, replace(PAUSED, key="paused")])
        await contents.rows.restore(list({row.key: row for row in ROWS.values()}.values()))
        await contents.fires.restore(FIRES)
        await contents.history.restore([history_item(1), history_item(2), history_item(3)])
        counts = [await part.count() for part in (contents.schedules, contents.rows, contents.fires, contents.history)]
        assert counts in ([2, 1, 4, 3], [None] * 4)

    async def test_what_is_no_cursor_is_refused(self, contents: Contents) -> None:
        for part in contents:
            with pytest.raises(InvalidInput, match="cursor"):
                await part.walk("{", 10)

    async def test_nothing_is_walked_and_restored(self, contents: Contents) -> None:
        for part in contents:
            await part.restore([])
        assert await all_of(contents.schedules) == []
        assert await all_of(contents.history) == []


def _ids(raws: Sequence[RawSchedule]) -> list[Id]:
    return sorted(raw.id for raw in raws)


def _opened(id: Id) -> Fire:
    return Fire(
        id=fire_id(*id, hour(1)), owner=id.owner, key=id.key, nominal_at=hour(1), opened_at=hour(1), deliver_after=hour(1)
    )
