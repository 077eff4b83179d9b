"""What only the DynamoDB store has: costs, shards, home regions, body items, and faults of the network."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from dynamodb_proxy import FaultProxy
from dynamodb_server import DynamodbServer
from dynamodb_tables import Tables, execute_one_by_one, head, items
from tickler import IndexRow, ManualClock, Schedule, connect
from tickler.dynamo.batches import execute_many, write_many
from tickler.dynamo.codec import Item, size_of
from tickler.dynamo.statements import Statement
from tickler.errors import InvalidInput, InvalidSchedule, PartlyWritten, SchemaMismatch, SchemaMissing, StoreUnavailable
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.stores.dynamodb import DynamodbStore, layout, schema
from tickler.testing.claimers import Claimers
from tickler.when import At, Cron

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")
YEARLY = Cron("0 0 1 1 *")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


def rows(number: int, when: Cron | At = HOURLY, *, name: str = "k", due_at: int = NOW_MS) -> list[IndexRow]:
    return [IndexRow(f"u{n % 50}", f"{name}{n:05}", when, due_at - number + n) for n in range(number)]


def occurrences(claimed: list[IndexRow]) -> Counter[tuple[str, str, int]]:
    return Counter((row.owner, row.key, row.next_fire_at) for row in claimed)


# What a claim costs.


@pytest.mark.parametrize("payload_bytes", [100, 100_000])
async def test_a_claim_costs_three_write_units_whatever_the_payload(
    dynamodb_server: DynamodbServer, tables: Tables, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, payload_bytes: int
) -> None:
    if not dynamodb_server.is_judge:
        pytest.skip(f"{dynamodb_server.engine} does not count write units as DynamoDB does")
    store = await tables.open()
    await Schedules(store.schedules, clock).put(
        Schedule(owner="ada" * 8, key="digest", when=HOURLY, payload="x" * payload_bytes, policy=Policy(delivery="at-most-once"))
    )
    monkeypatch.setattr("tickler.stores.dynamodb.index.claim.execute_many", execute_one_by_one)
    before = store.client.usage.write_units
    assert len(await store.index.claim_due(NOW_MS + HOUR_MS)) == 1
    assert store.client.usage.write_units - before == 3.0
    assert await store.index.next_due() == NOW_MS + 2 * HOUR_MS


async def test_a_thousand_due_rows_take_at_most_six_requests_in_a_hundred(tables: Tables) -> None:
    store = await tables.open(shards=16)
    await store.index.upsert_many(rows(1000))
    before = store.client.usage.requests.total()
    assert len(await store.index.claim_due(NOW_MS, 1000)) == 1000
    assert store.client.usage.requests.total() - before <= 60


async def test_a_claim_reads_the_same_whatever_sleeps_beside_it(tables: Tables, soak: bool) -> None:
    units = []
    for number in (100, 100_000 if soak else 3_000):
        store = await tables.open()
        sleeping = [
            layout.row_head(row, "eu-west-1", 16)
            for row in rows(number, YEARLY, name="asleep", due_at=NOW_MS + 30 * 24 * HOUR_MS)
        ]
        await write_many(store.client, store.table_name, [{"PutRequest": {"Item": item}} for item in sleeping])
        await store.index.upsert_many(rows(50))
        before = store.client.usage.read_units
        assert len(await store.index.claim_due(NOW_MS)) == 50
        units.append(store.client.usage.read_units - before)
    assert units[0] == units[1] > 0


async def test_a_claim_never_scans_and_never_filters(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    await store.index.upsert_many([*rows(30), *rows(30, name="asleep", due_at=NOW_MS + HOUR_MS)])
    proxy.log_bodies = True
    assert len(await store.index.claim_due(NOW_MS)) == 30
    assert {operation for operation, _ in proxy.bodies} == {"Query", "BatchExecuteStatement"}
    queries = [body for operation, body in proxy.bodies if operation == "Query"]
    assert all("FilterExpression" not in body and "next_fire_at" in str(body["ExpressionAttributeNames"]) for body in queries)


# Faults.


async def test_a_row_seen_in_a_stale_index_is_not_claimed_again(tables: Tables, proxy: FaultProxy) -> None:
    """The condition on `next_fire_at` decides, not the index."""
    first = await tables.open()
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False, attempts=1)
    await first.index.upsert_many(rows(40))
    proxy.throttle_statements = 1.0
    with pytest.raises(StoreUnavailable):
        await second.index.claim_due(NOW_MS)  # sees the rows, and claims none
    proxy.throttle_statements = 0.0
    assert len(await first.index.claim_due(NOW_MS)) == 40
    proxy.stale = True
    assert await second.index.claim_due(NOW_MS) == []
    assert proxy.served["stale"] > 0
    assert second.index.claimer.races_lost > 0


async def test_a_schedule_changed_behind_a_stale_index_is_not_advanced_by_its_old_self(
    tables: Tables, proxy: FaultProxy, clock: ManualClock
) -> None:
    """Its instant is unchanged, its expression is not: only the revision differs."""
    first = await tables.open()
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False, attempts=1)
    schedules = Schedules(first.schedules, clock)
    await schedules.put(Schedule(owner="u1", key="digest", when=HOURLY))
    proxy.throttle_statements = 1.0
    with pytest.raises(StoreUnavailable):
        await second.index.claim_due(NOW_MS + HOUR_MS)
    proxy.throttle_statements = 0.0
    await schedules.put(Schedule(owner="u1", key="digest", when="0 13 * * *"))
    proxy.stale = True
    assert await second.index.claim_due(NOW_MS + HOUR_MS) == []
    assert proxy.served["stale"] > 0
    assert len(await first.index.claim_due(NOW_MS + HOUR_MS)) == 1
    assert await first.index.next_due() == NOW_MS + 25 * HOUR_MS


async def test_ghosts_in_a_stale_index_do_not_hide_what_is_due_behind_them(tables: Tables, proxy: FaultProxy) -> None:
    first = await tables.open(shards=1)
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False)
    await first.index.upsert_many(rows(60))
    proxy.stale = True
    assert len(await second.index.claim_due(NOW_MS, 5)) == 5
    assert len(await first.index.claim_due(NOW_MS, 30)) == 30
    assert len(await second.index.claim_due(NOW_MS, 5)) == 5, "the first page had only ghosts in it"
    assert proxy.served["stale"] > 0
    assert second.index.claimer.races_lost > 0


@pytest.mark.parametrize("stale", [False, True], ids=["as it is", "stale on every query"])
async def test_four_processes_claim_many_rows_without_duplicate_or_loss(
    tables: Tables, proxy: FaultProxy, soak: bool, stale: bool
) -> None:
    store = await tables.open(shards=8)
    due = rows(5000 if soak else 1000)
    puts = [{"PutRequest": {"Item": layout.row_head(row, "eu-west-1", 8)}} for row in due]
    await write_many(store.client, store.table_name, puts)
    proxy.stale = stale
    async with Claimers(f"dynamodb://{store.table_name}?region=eu-west-1&endpoint={proxy.endpoint}") as claimers:
        await claimers.start(4, NOW_MS, limit=200)
        claimers.go()
        returned = await claimers.finish()
    while claimed := await store.index.claim_due(NOW_MS, 1000):  # rows that no stale index showed are still due
        returned += occurrences(claimed)
    assert (proxy.served["stale"] > 0) is stale
    assert returned == occurrences(due)
    assert await store.index.count() == len(due)


@pytest.mark.parametrize("fault", ["throttle", "throttle_statements", "error_500", "reset_before", "reset_after"])
async def test_no_fault_on_the_way_loses_or_repeats_a_claim(tables: Tables, proxy: FaultProxy, fault: str) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    due = [*rows(75), *rows(15, At("2030-11-20T11:00:00Z"), name="once")]
    await store.index.upsert_many(due)
    proxy.only = {"BatchExecuteStatement", "Query"}
    setattr(proxy, fault, 0.3)
    returned: Counter[tuple[str, str, int]] = Counter()
    while claimed := await store.index.claim_due(NOW_MS, 30):
        returned += occurrences(claimed)
    assert proxy.served[fault] > 0
    assert returned == occurrences(due)


@pytest.mark.parametrize("fault", ["throttle", "throttle_statements", "error_500", "reset_before", "reset_after", "unprocessed"])
async def test_no_fault_on_the_way_loses_or_repeats_a_write(
    tables: Tables, proxy: FaultProxy, clock: ManualClock, fault: str
) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    schedules = Schedules(store.schedules, clock)
    setattr(proxy, fault, 0.25)
    many = [Schedule(owner="u1", key=f"k{n:03}", when=HOURLY, payload="x" * (2000 if n % 10 == 0 else 10)) for n in range(60)]
    assert await schedules.put_many(many) == 60
    changed = [Schedule(owner="u1", key=each.key, when=HOURLY, payload="y" * len(str(each.payload))) for each in many]
    assert await schedules.put_many(changed) == 60
    assert await schedules.put_many(changed) == 0
    assert await schedules.pause_all("u1") == 60
    setattr(proxy, fault, 0.0)
    assert proxy.served[fault] > 0
    page = await schedules.list(owner="u1", limit=200)
    assert {(each.version, each.state) for each in page.items} == {(3, "paused")}
    assert [each.payload for each in page.items] == [each.payload for each in changed]
    assert await schedules.delete_all("u1") == 60
    assert [item for item in await items(store) if item["pk"]["S"].startswith("owner#")] == [], "no body is left behind"


@pytest.mark.parametrize("fault", ["throttle", "error_500", "reset_before", "reset_after"])
async def test_no_fault_on_the_way_makes_a_record_conflict_with_itself(tables: Tables, proxy: FaultProxy, fault: str) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    setattr(proxy, fault, 0.3)
    for version in range(20):
        assert await store.records.put("k", "a", b"1", now_ms=NOW_MS, expected=version) == version + 1
    assert proxy.served[fault] > 0


async def test_what_was_claimed_before_a_failure_is_returned_and_not_lost(
    tables: Tables, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    store = await tables.open(endpoint=proxy.endpoint, attempts=1)
    due = rows(300)
    direct = await tables.open(store.table_name, create=False)
    await direct.index.upsert_many(due)
    proxy.only = {"BatchExecuteStatement"}
    proxy.reset_before = 0.4
    claimed = await store.index.claim_due(NOW_MS, 300)
    assert proxy.served["reset_before"] > 0
    assert 0 < len(claimed) < 300
    assert "then failed" in caplog.text
    assert occurrences(claimed) + occurrences(await direct.index.claim_due(NOW_MS, 300)) == occurrences(due)


async def test_a_claim_that_is_cancelled_is_reverted(tables: Tables, proxy: FaultProxy, clock: ManualClock) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    due = [*rows(30), *rows(5, At("2030-11-20T11:00:00Z"), name="once")]
    await store.index.upsert_many(due)
    await Schedules(store.schedules, clock).put_many(
        [Schedule(owner="m", key=f"s{n}", when=At("2030-11-20T12:00:00.001Z")) for n in range(3)]
    )
    proxy.only = {"BatchExecuteStatement"}
    proxy.delay_s = 0.3
    work = asyncio.create_task(store.index.claim_due(NOW_MS + 1, 100))
    while not proxy.served["delay_s"]:
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    proxy.delay_s = 0
    claimed = await store.index.claim_due(NOW_MS + 1, 100)
    assert len(claimed) == 38
    assert set(occurrences(due)) <= set(occurrences(claimed))


async def test_an_engine_that_is_gone_is_unavailable_and_says_so(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint, attempts=2)
    proxy.reset_before = 1.0
    with pytest.raises(StoreUnavailable, match="failed after 2 attempts"):
        await store.index.claim_due(NOW_MS)


async def test_put_many_that_fails_half_way_says_how_far_it_came_and_can_be_repeated(
    tables: Tables, proxy: FaultProxy, clock: ManualClock
) -> None:
    store = await tables.open(endpoint=proxy.endpoint, attempts=1)
    schedules = Schedules(store.schedules, clock)
    many = [Schedule(owner="u1", key=f"k{n:04}", when=HOURLY) for n in range(400)]
    await schedules.put(Schedule(owner="zone", key="known", when=HOURLY))
    proxy.only = {"BatchExecuteStatement"}
    proxy.error_500 = 0.5
    with pytest.raises(PartlyWritten, match="repeat the call") as failed:
        await schedules.put_many(many)
    assert 0 < failed.value.done < failed.value.total == 400
    proxy.error_500 = 0.0
    assert await store.index.count() == failed.value.done + 1
    assert await schedules.put_many(many) == 400 - failed.value.done
    assert await store.index.count() == 401


# Bodies, heads and names.


async def test_a_large_payload_lives_beside_the_head_and_only_as_long_as_it_is_large(tables: Tables, clock: ManualClock) -> None:
    store = await tables.open()
    schedules = Schedules(store.schedules, clock)

    async def kept() -> dict[str, int]:
        return {item["sk"]["S"].split("\t")[0]: size_of(item) for item in await items(store) if item["pk"]["S"] == "owner#u1"}

    for size in (100_000, 50_000, 10, 100_000):
        await schedules.put(Schedule(owner="u1", key="digest", when=HOURLY, payload="x" * size))
        sizes = await kept()
        assert sizes["head"] < 1024
        assert sizes.get("body", 0) >= size if size > 1000 else "body" not in sizes
        stored = await schedules.get("u1", "digest")
        assert stored is not None
        assert stored.payload == "x" * size
    before = store.client.usage.write_units
    await schedules.pause("u1", "digest")
    assert store.client.usage.write_units - before < 10, "a pause does not write the body"
    assert await schedules.delete("u1", "digest")
    assert await kept() == {}


async def test_a_schedule_that_takes_over_a_finished_row_does_not_die_with_it(tables: Tables, clock: ManualClock) -> None:
    """A finished row without a schedule stays with a time to live."""
    store = await tables.open()
    await store.index.upsert_many([IndexRow("u1", "digest", At("2030-11-20T11:00:00Z"), NOW_MS - HOUR_MS)])
    assert len(await store.index.claim_due(NOW_MS)) == 1
    assert "ttl" in await head(store, "u1", "digest")
    await Schedules(store.schedules, clock).put(Schedule(owner="u1", key="digest", when=HOURLY))
    assert "ttl" not in await head(store, "u1", "digest")
    assert await store.index.next_due() == NOW_MS + HOUR_MS


async def test_an_upsert_that_races_a_last_claim_leaves_no_time_to_live_behind(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await tables.open()
    other = await tables.open(store.table_name)
    await store.index.upsert_many([IndexRow("u1", "once", At("2030-11-20T11:00:00Z"), NOW_MS - HOUR_MS)])
    read = store.index._heads
    claimed: list[IndexRow] = []

    async def read_and_be_overtaken(ids: Any) -> dict[Id, Item]:
        heads = await read(ids)
        claimed.extend(await other.index.claim_due(NOW_MS))
        return heads

    monkeypatch.setattr(store.index, "_heads", read_and_be_overtaken)
    await store.index.upsert_many([IndexRow("u1", "once", HOURLY, NOW_MS + HOUR_MS)])
    assert len(claimed) == 1, "nobody was overtaken, so nothing was shown"
    assert "ttl" not in await head(store, "u1", "once")
    assert await store.index.next_due() == NOW_MS + HOUR_MS


async def test_an_item_that_a_foreign_hand_has_put_into_the_index_blocks_nothing(
    tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    store = await tables.open(shards=1)
    item: Item = {
        "pk": {"S": "mine"},
        "sk": {"S": "own"},
        "due_shard": {"S": "eu-west-1#0"},
        "next_fire_at": {"N": "1"},
    }
    await store.client.call("PutItem", {"TableName": store.table_name, "Item": item})
    await store.index.upsert_many(rows(3))
    assert len(await store.index.claim_due(NOW_MS, 3)) == 3
    assert "which Tickler did not write" in caplog.text


@pytest.mark.parametrize(
    ("field", "schedule"),
    [
        ("owner", Schedule(owner="o" * 500, key="k", when=HOURLY)),
        ("key", Schedule(owner="o", key="k" * 512, when=HOURLY, policy=Policy(backoff=list(range(1, 100))))),
        ("policy", Schedule(owner="o", key="k", when=HOURLY, policy=Policy(backoff=[n * 1001.125 for n in range(1, 100)]))),
    ],
    ids=["owner", "key", "policy"],
)
async def test_a_head_that_cannot_be_kept_small_is_refused_before_anything_is_written(
    tables: Tables, clock: ManualClock, field: str, schedule: Schedule
) -> None:
    store = await tables.open()
    with pytest.raises(InvalidSchedule, match="1024 are allowed") as refused:
        await Schedules(store.schedules, clock).put_many([Schedule(owner="fine", key="k", when=HOURLY), schedule])
    assert refused.value.field == field
    assert await store.index.count() == 0


async def test_names_that_are_too_long_for_a_key_are_just_not_there(tables: Tables, clock: ManualClock) -> None:
    store = await tables.open()
    schedules = Schedules(store.schedules, clock)
    assert await schedules.get("o" * 512, "k" * 512) is None
    assert not await schedules.delete("o" * 512, "k" * 512)
    await store.index.remove("o" * 512, "k" * 512)


async def test_a_cursor_of_a_later_owner_has_nothing_after_it(tables: Tables, clock: ManualClock) -> None:
    store = await tables.open()
    schedules = Schedules(store.schedules, clock)
    await schedules.put_many([Schedule(owner=owner, key=key, when=HOURLY) for owner in "ab" for key in "xy"])
    page = await schedules.list(owner="b", limit=1)
    assert (await schedules.list(owner="a", after=page.next)).items == []
    assert (await schedules.list(owner="a", state="active", after=page.next)).items == []


async def test_names_that_look_like_keys_of_the_layout_do_not_meet(tables: Tables, clock: ManualClock) -> None:
    store = await tables.open()
    schedules = Schedules(store.schedules, clock)
    ids = [("a#b", "c"), ("a", "b#c"), ("owner#a", "head"), ("tickler", "settings"), ("record#zone", "UTC")]
    await schedules.put_many([Schedule(owner=owner, key=key, when=HOURLY, payload=[owner, key]) for owner, key in ids])
    for owner, key in ids:
        stored = await schedules.get(owner, key)
        assert stored is not None
        assert stored.payload == [owner, key]
    assert await store.index.count() == len(ids)


# Shards.


async def test_a_url_that_names_another_number_of_shards_is_refused(tables: Tables) -> None:
    store = await tables.open(shards=4)
    with pytest.raises(InvalidInput, match=r"the table has 4 shards.*--shards 8"):
        await tables.open(store.table_name, shards=8)
    await tables.open(store.table_name, shards=4)
    await tables.open(store.table_name)


async def test_shards_can_be_raised_while_workers_claim_and_nothing_is_lost_or_twice(tables: Tables) -> None:
    """Hourly rows move as they advance; a yearly one stays in its old shard, and is found there when its day comes."""
    store = await tables.open(shards=4, refresh_ms=100)
    name = store.table_name
    hourly = rows(120)
    yearly_at = NOW_MS + 40 * 24 * HOUR_MS
    yearly = [IndexRow("year", f"y{n}", YEARLY, yearly_at) for n in range(30)]
    await store.index.upsert_many([*hourly, *yearly])
    workers = [await tables.open(name, refresh_ms=100) for _ in range(2)]
    hours = 0
    migrated = asyncio.Event()
    returned: list[Counter[tuple[str, str, int]]] = [Counter(), Counter()]

    async def work(n: int) -> None:
        nonlocal hours
        while not migrated.is_set() or hours < 4:
            claimed = await workers[n].index.claim_due(NOW_MS + hours * HOUR_MS, 40)
            returned[n] += occurrences(claimed)
            if not claimed and n == 0:
                hours += 1

    async def migrate() -> None:
        other = DynamodbStore(name, store.client.address, label=f"dynamodb://{name}")
        await other.reshard(16)
        migrated.set()

    await asyncio.gather(work(0), work(1), migrate())
    last_ms = NOW_MS + hours * HOUR_MS
    while claimed := await workers[0].index.claim_due(last_ms, 1000):
        returned[0] += occurrences(claimed)
    shards = {item["due_shard"]["S"] for item in await items(store) if item["sk"]["S"].startswith("head\tu")}
    assert any(int(shard.rpartition("#")[2]) >= 4 for shard in shards), "nothing has moved, so nothing was shown"
    while claimed := await workers[1].index.claim_due(yearly_at, 1000):
        returned[1] += Counter({each: n for each, n in occurrences(claimed).items() if each[0] == "year"})
    together = returned[0] + returned[1]
    assert max(together.values()) == 1, "an occurrence came back twice"
    expected = {(row.owner, row.key, row.next_fire_at) for row in [*hourly, *yearly]}
    expected |= {(row.owner, row.key, NOW_MS + hour * HOUR_MS) for row in hourly for hour in range(1, hours + 1)}
    assert set(together) == expected


@pytest.mark.parametrize(("shards", "reason"), [(2, "pass a higher number"), (5000, "pass at most 1024")])
async def test_shards_cannot_be_lowered_or_raised_without_measure(tables: Tables, shards: int, reason: str) -> None:
    store = await tables.open(shards=4)
    other = DynamodbStore(store.table_name, store.client.address, label="dynamodb://t")
    with pytest.raises(InvalidInput, match=reason):
        await other.reshard(shards)


async def test_workers_that_start_together_start_at_different_shards(tables: Tables, proxy: FaultProxy) -> None:
    name = (await tables.open(shards=16)).table_name
    proxy.log_bodies = True
    first = []
    for _ in range(8):
        store = await tables.open(name, endpoint=proxy.endpoint)
        proxy.bodies.clear()
        await store.index.claim_due(NOW_MS)
        first.append(next(str(body["ExpressionAttributeValues"]) for operation, body in proxy.bodies if operation == "Query"))
    assert len(set(first)) > 2


# Home regions.


@pytest.fixture
def regions_of_one_table(dynamodb_server: DynamodbServer) -> None:
    """DynamoDB Local shows the same table in every region, like a global table after replication."""
    if not dynamodb_server.is_judge:
        pytest.skip(f"{dynamodb_server.engine} keeps the tables of regions apart, so there is no replica to look at")


@pytest.mark.usefixtures("regions_of_one_table")
async def test_a_worker_claims_only_what_is_at_home_in_its_region(tables: Tables) -> None:
    paris = await tables.open(region="eu-west-3")
    oregon = await tables.open(paris.table_name, region="us-west-2")
    await paris.index.upsert_many(rows(20, name="paris"))
    await oregon.index.upsert_many(rows(10, name="oregon"))
    assert {row.key[:6] for row in await oregon.index.claim_due(NOW_MS)} == {"oregon"}
    assert {row.key[:5] for row in await paris.index.claim_due(NOW_MS)} == {"paris"}
    assert (await paris.index.count(), await oregon.index.count()) == (20, 10)


@pytest.mark.usefixtures("regions_of_one_table")
async def test_a_schedule_keeps_its_home_wherever_it_is_changed(tables: Tables, clock: ManualClock) -> None:
    paris = await tables.open(region="eu-west-3")
    oregon = await tables.open(paris.table_name, region="us-west-2")
    await Schedules(paris.schedules, clock).put(Schedule(owner="u1", key="digest", when=HOURLY))
    await Schedules(oregon.schedules, clock).put(Schedule(owner="u1", key="digest", when="30 * * * *"))
    assert await oregon.index.claim_due(NOW_MS + HOUR_MS) == []
    assert len(await paris.index.claim_due(NOW_MS + HOUR_MS)) == 1


@pytest.mark.usefixtures("regions_of_one_table")
async def test_a_region_that_failed_is_moved_to_another_one(tables: Tables, clock: ManualClock) -> None:
    paris = await tables.open(region="eu-west-3")
    oregon = await tables.open(paris.table_name, region="us-west-2")
    schedules = Schedules(paris.schedules, clock)
    await schedules.put_many([Schedule(owner="u1", key=f"k{n}", when=HOURLY, payload="x" * 2000) for n in range(30)])
    await schedules.pause("u1", "k0")
    await paris.index.upsert_many(rows(5))
    await oregon.index.upsert_many([IndexRow("stays", "here", HOURLY, NOW_MS)])
    said: list[str] = []
    mover = DynamodbStore(paris.table_name, oregon.client.address, label="dynamodb://t")
    await mover.move_home("us-west-2", "eu-west-3", lambda activity, done, total: said.append(activity))
    assert "moved 35 items to us-west-2" in said
    assert await paris.index.claim_due(NOW_MS + HOUR_MS) == []
    assert len(await oregon.index.claim_due(NOW_MS + HOUR_MS)) == 35
    resumed = await schedules.resume("u1", "k0")
    assert resumed.state == "active"
    assert (await head(oregon, "u1", "k0"))["due_shard"]["S"].startswith("us-west-2#")


@pytest.mark.usefixtures("regions_of_one_table")
async def test_a_claim_that_saw_a_row_in_its_old_home_does_not_bring_it_back(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    paris = await tables.open(region="eu-west-3")
    oregon = await tables.open(paris.table_name, region="us-west-2")
    await paris.index.upsert_many(rows(5))

    async def overtaken(client: Any, statements: list[Statement]) -> Any:
        monkeypatch.setattr("tickler.stores.dynamodb.index.claim.execute_many", execute_many)
        mover = DynamodbStore(paris.table_name, oregon.client.address, label="dynamodb://t")
        await mover.move_home("us-west-2")
        return await execute_many(client, statements)

    monkeypatch.setattr("tickler.stores.dynamodb.index.claim.execute_many", overtaken)
    assert await paris.index.claim_due(NOW_MS) == []
    assert len(await oregon.index.claim_due(NOW_MS)) == 5


# The table.


async def test_a_missing_table_names_both_ways_to_make_it(tables: Tables) -> None:
    with pytest.raises(SchemaMissing, match=r"tickler migrate --store dynamodb://.*create=1"):
        await tables.open(create=False)


async def test_connect_does_not_make_a_table_unless_it_is_told_to(tables: Tables) -> None:
    name = tables.new_name()
    url = f"dynamodb://{name}?region=eu-west-1&endpoint={tables.endpoint}"
    with pytest.raises(SchemaMissing):
        await connect(url).open()
    async with connect(f"{url}&create=1") as t:
        assert await t.index.count() == 0
    await tables.open(name, create=False)


@pytest.mark.parametrize(
    ("indexes", "attribute", "reason"),
    [
        (["listed"], "due", "no index 'due'"),
        (["due", "open"], "listed", "no index 'listed'"),
        (["due", "listed"], "open", "no index 'open'"),
        (["swapped", "listed"], "due_shard", "the partition key of the index 'due' is 'next_fire_at', and must be 'due_shard'"),
        (["text", "listed"], "next_fire_at", "the key 'next_fire_at' of the index 'due' has type S, and must have N"),
        (["narrow", "listed"], "ends_at", "does not project 'ends_at'"),
    ],
)
async def test_an_index_that_is_missing_or_keyed_differently_is_named(
    tables: Tables, indexes: list[str], attribute: str, reason: str
) -> None:
    good = await tables.open()
    name = tables.new_name()
    due = schema.index_definition("due")
    definitions = {
        "due": due,
        "open": schema.index_definition("open"),
        "listed": schema.index_definition("listed"),
        "text": due,
        "narrow": due | {"Projection": {"ProjectionType": "KEYS_ONLY"}},
        "swapped": due
        | {
            "KeySchema": [
                {"AttributeName": "next_fire_at", "KeyType": "HASH"},
                {"AttributeName": "due_shard", "KeyType": "RANGE"},
            ]
        },
    }
    types = schema.KEY_TYPES | ({"next_fire_at": "S"} if "text" in indexes else {})
    used = {key["AttributeName"] for each in indexes for key in definitions[each]["KeySchema"]} | {"pk", "sk"}
    await good.client.call(
        "CreateTable",
        schema.table_definition(name)
        | {
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": types[each]} for each in sorted(used)],
            "GlobalSecondaryIndexes": [definitions[each] for each in indexes],
        },
    )
    settings = await good.client.call("GetItem", {"TableName": good.table_name, "Key": layout.SETTINGS_KEY})
    await good.client.call("PutItem", {"TableName": name, "Item": settings["Item"]})
    with pytest.raises(SchemaMismatch, match=reason) as refused:
        await tables.open(name, create=False)
    assert refused.value.attribute == attribute
    await good.client.call("DeleteTable", {"TableName": name})


@pytest.mark.adds_index
async def test_migrate_adds_what_is_missing_to_a_table_that_was_made_without_it(tables: Tables) -> None:
    good = await tables.open()
    name = tables.new_name()
    definition = schema.table_definition(name)
    definition["GlobalSecondaryIndexes"] = [schema.index_definition("due")]
    used = ("pk", "sk", *schema.INDEX_KEYS["due"])
    definition["AttributeDefinitions"] = [each for each in definition["AttributeDefinitions"] if each["AttributeName"] in used]
    await good.client.call("CreateTable", definition)
    store = DynamodbStore(name, good.client.address, label=f"dynamodb://{name}")
    assert await store.migrate() == ["0001_table"]
    assert await store.migrate() == []
    opened = await tables.open(name, create=False)
    assert await opened.index.count() == 0


async def test_several_processes_may_make_the_same_table_at_once(tables: Tables) -> None:
    name = tables.new_name()
    stores = await asyncio.gather(*(tables.open(name) for _ in range(5)))
    await stores[0].index.upsert_many(rows(3))
    assert await stores[4].index.count() == 3


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("dynamodb://", "name a table"),
        ("dynamodb://a/b", "name a table"),
        ("dynamodb://tab?shards=0", "whole number"),
        ("dynamodb://tab?shards=many", "whole number"),
        ("dynamodb://tab?regoin=x", "unknown parameter 'regoin'"),
        ("dynamodb://tab?region=eu-west-1&timeout=-1", "seconds"),
    ],
)
def test_a_url_that_does_not_read_says_what_is_wrong(url: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        connect(url)


async def test_what_joins_a_transaction_is_refused(tables: Tables, clock: ManualClock) -> None:
    store = await tables.open()
    with pytest.raises(InvalidInput, match="using"):
        await Schedules(store.schedules, clock).put(Schedule(owner="u1", key="k", when=HOURLY), using=object())
    with pytest.raises(InvalidInput, match="using"):
        await store.index.upsert_many(rows(1), using=object())


async def test_the_clock_of_the_store_is_known_to_the_second(tables: Tables) -> None:
    store = await tables.open()
    told = await store.now_ms()
    assert told is not None
    async with connect(f"dynamodb://{store.table_name}?region=eu-west-1&endpoint={tables.endpoint}") as t:
        assert abs(told - t.now_ms()) < 60_000
