"""What only the DynamoDB store has for fires: their items, their costs, and faults of the network."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from dynamodb_proxy import FaultProxy
from dynamodb_server import DynamodbServer
from dynamodb_tables import Tables, execute_one_by_one, head, items
from tickler import At, IndexRow, ManualClock, Schedule
from tickler.dynamo.batches import get_many, write_many
from tickler.dynamo.codec import Item, size_of
from tickler.errors import SchemaMismatch, StoreUnavailable
from tickler.fires.contract import ClaimRequest, LeaseRequest, next_at
from tickler.model.fire import Claim, Entry, Fire, Settlement, fire_id
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.schedules.schedules import Schedules
from tickler.stores.dynamodb import DynamodbStore, layout
from tickler.stores.dynamodb.fires.layout import OF_FIRE
from tickler.stores.dynamodb.fires.transaction import read_owing
from tickler.stores.dynamodb.layout import SETTINGS_KEY
from tickler.stores.dynamodb.schedules.cancellation import cancellations
from tickler.stores.dynamodb.transactions import Write, write_all, write_transaction
from tickler.when import Cron, Every, When

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
LEASE_MS = 30_000
KEPT_UNTIL = NOW_MS + 30 * 24 * HOUR_MS
HOURLY = Cron("0 * * * *")
AT_MOST_ONCE = Policy(delivery="at-most-once")
CATCH_UP = Policy(missed="all", max_catchup=1000)
WAIT = Policy(overlap="wait")
SOAK = os.environ.get("TICKLER_SOAK") == "1"


def hour(n: float) -> int:
    return NOW_MS + round(n * HOUR_MS)


def schedule(key: str = "digest", when: When = HOURLY, *, owner: str = "u1", **fields: object) -> Schedule:
    return Schedule(owner=owner, key=key, when=when, **{"target": "https://example.org/hook", **fields})  # type: ignore[arg-type]  # any of its fields


async def put(store: DynamodbStore, *schedules: Schedule) -> None:
    await Schedules(store.schedules, ManualClock(NOW_MS)).put_many(schedules)


async def claim(store: DynamodbStore, now_ms: int, limit: int = 1000, worker: str = "worker") -> list[Claim]:
    return await store.fires.claim(
        ClaimRequest(now_ms=now_ms, limit=limit, worker=worker, lease_ms=LEASE_MS, expires_at=KEPT_UNTIL)
    )


async def lease(store: DynamodbStore, now_ms: int, limit: int = 1000, worker: str = "other") -> list[Claim]:
    return await store.fires.lease(
        LeaseRequest(now_ms=now_ms, limit=limit, worker=worker, lease_ms=LEASE_MS, expires_at=KEPT_UNTIL)
    )


async def settle(store: DynamodbStore, now_ms: int, *settlements: Settlement) -> list[Fire]:
    return await store.fires.settle(settlements, now_ms, expires_at=KEPT_UNTIL)


def owed(claims: Sequence[Claim]) -> list[Fire]:
    return [claim.fire for claim in claims if claim.fire is not None]


def done(fire: Fire, at: int, *, delete_schedule: bool = False) -> Settlement:
    return Settlement(Id(fire.owner, fire.key), fire, "done", entry(fire, at), delete_schedule=delete_schedule)


def retry(fire: Fire, at: int, deliver_after: int, detail: str = "it answered 503") -> Settlement:
    return Settlement(Id(fire.owner, fire.key), fire, "retry", entry(fire, at, detail), deliver_after)


def entry(fire: Fire, at: int, detail: str | None = None) -> Entry:
    return Entry(
        owner=fire.owner,
        key=fire.key,
        nominal_at=fire.nominal_at,
        at=at,
        happened="failed" if detail else "delivered",
        fire_id=fire.id,
        attempt=fire.attempt,
        status=200,
        duration_ms=12,
        detail=detail,
        worker=fire.worker,
    )


def triggered(key: str, at: int) -> Fire:
    id = fire_id("u1", key, at, triggered=True)
    return Fire(id=id, owner="u1", key=key, nominal_at=at, opened_at=at, deliver_after=at)


async def past(store: DynamodbStore, key: str = "digest") -> list[Entry]:
    return [each for _, each in await store.fires.history(id=Id("u1", key), before=None, limit=10_000)]


async def own_items(store: DynamodbStore) -> list[Item]:
    """Fires that are not on the heads of their schedules."""
    return [item for item in await items(store) if item["pk"]["S"].startswith("fires#")]


# What it costs.


class Bill:
    """The write units of each step, measured on single-item forms of the statements that are sent."""

    def __init__(self, store: DynamodbStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self._store = store
        for module in ("fires.claim", "fires.change", "transactions", "fires.history"):
            monkeypatch.setattr(f"tickler.stores.dynamodb.{module}.execute_many", execute_one_by_one)

    async def of(self, work: Any) -> tuple[Any, float]:
        before = self._store.client.usage.write_units
        return await work, self._store.client.usage.write_units - before


@pytest.mark.parametrize("payload_bytes", [100, 100_000])
async def test_fires_cost_what_the_guide_says_whatever_the_payload(
    dynamodb_server: DynamodbServer, tables: Tables, monkeypatch: pytest.MonkeyPatch, payload_bytes: int
) -> None:
    if not dynamodb_server.is_judge:
        pytest.skip(f"{dynamodb_server.engine} does not count write units as DynamoDB does")
    store = await tables.open()
    await put(store, *(schedule(policy=policy, payload="x" * payload_bytes) for policy in [Policy()]))
    await put(store, schedule("once", policy=AT_MOST_ONCE, payload="x" * payload_bytes))
    bill = Bill(store, monkeypatch)
    (first, second), units = await bill.of(claim(store, hour(1)))
    assert units == 4 + 3, "the head, two for its entry in `due`, and one for that in `open` where there is a fire"
    (fire,) = owed([first, second])
    _, units = await bill.of(store.fires.extend([fire], hour(1.5)))
    assert units == 1 + 2
    _, units = await bill.of(settle(store, hour(1), retry(fire, hour(1), hour(1.1))))
    assert units == 1 + 2 + 1, "one for the entry in the history"
    ((leased,), units) = await bill.of(lease(store, hour(1.1)))
    assert units == 1 + 2
    _, units = await bill.of(settle(store, hour(1), Settlement(Id("u1", "digest"), leased.fire, "done", None)))
    assert units == 1 + 1
    said = entry(fire, hour(1))
    _, units = await bill.of(settle(store, hour(1), Settlement(Id("u1", "digest"), None, "done", said)))
    assert units == 1


async def test_a_head_with_an_open_fire_and_all_there_is_to_say_of_it_stays_under_one_kilobyte(tables: Tables) -> None:
    store = await tables.open()
    worker = "a-host-with-a-long-name.example.org:12345"
    await put(store, schedule("inline", policy=WAIT))
    room = layout.INLINE_BYTES - size_of(await head(store, "u1", "inline"))
    await put(store, schedule("inline", policy=WAIT, payload="x" * (room - 20)))
    await put(store, schedule("n" * 160, owner="o" * 160, when=Cron("0 * * * *", tz="America/Argentina/Buenos_Aires")))
    assert "body" in await head(store, "u1", "inline")
    assert await store.fires.open(triggered("inline", NOW_MS))
    claims = [*await lease(store, NOW_MS, worker=worker), *await claim(store, hour(1), worker=worker)]
    assert len(claims) == 2
    sizes = [size_of(await head(store, *each.schedule.id)) for each in claims]
    assert 800 < max(sizes) < 1024
    await settle(store, hour(1), *(retry(fire, hour(1), hour(1), "why not " * 100) for fire in owed(claims[:1])))
    await lease(store, hour(1), worker=worker)
    assert size_of(await head(store, "u1", "inline")) < 1024


async def test_many_are_claimed_and_settled_in_few_requests(tables: Tables) -> None:
    store = await tables.open(shards=4)
    await put(store, *(schedule(f"k{n:03}", payload="x" * (2000 if n % 2 else 10)) for n in range(200)))
    requests = store.client.usage.requests
    requests.clear()
    claims = await claim(store, hour(1), 200)
    assert {len(str(each.schedule.payload)) for each in claims} == {10, 2000}
    assert (requests["BatchExecuteStatement"], requests["BatchGetItem"], requests["TransactWriteItems"]) == (8, 1, 0)
    requests.clear()
    assert await settle(store, hour(1), *(done(fire, hour(1)) for fire in owed(claims))) == []
    assert requests == {"BatchExecuteStatement": 16}, "entries, and then the fires"


async def test_claims_and_leases_never_scan_and_never_filter(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    await put(store, *(schedule(f"k{n}") for n in range(20)))
    proxy.log_bodies = True
    assert len(await claim(store, hour(1))) == len(await lease(store, hour(1.5))) == 20
    assert {operation for operation, _ in proxy.bodies} == {
        "Query",
        "BatchExecuteStatement",
        "BatchGetItem",
        "TransactWriteItems",  # the leases had run out, and that is remembered with the new ones
    }
    queries = [body for operation, body in proxy.bodies if operation == "Query"]
    assert all("FilterExpression" not in body and "#sort <= :until" in body["KeyConditionExpression"] for body in queries)


# On the head, and beside it.


async def test_a_fire_lies_on_the_head_and_others_of_its_schedule_beside_it(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule())
    (first,) = owed(await claim(store, hour(1)))
    assert (await head(store, "u1", "digest"))["fire_nominal"] == {"N": str(hour(1))}
    assert await own_items(store) == []
    (second,) = owed(await claim(store, hour(2)))
    assert await store.fires.open(triggered("digest", hour(2.5)))
    assert (await head(store, "u1", "digest"))["fire_nominal"] == {"N": str(hour(1))}
    assert len(await own_items(store)) == 2
    assert await settle(store, hour(2), done(first, hour(2))) == []
    assert "fire_nominal" not in await head(store, "u1", "digest")
    (third,) = owed(await claim(store, hour(3)))
    assert [fire.id for fire in await store.fires.list(state="open", id=None, owner=None, after=None, limit=9)] == [
        second.id,
        fire_id("u1", "digest", hour(2.5), triggered=True),
        third.id,
    ]
    leased = owed(await lease(store, hour(4)))
    assert await settle(store, hour(4), *(done(fire, hour(4)) for fire in leased)) == []
    assert await own_items(store) == []
    assert not set(OF_FIRE) & set(await head(store, "u1", "digest"))


async def test_only_what_will_be_delivered_is_in_the_index_of_open_fires(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule(policy=WAIT))
    (fire,) = owed(await claim(store, hour(1)))
    await claim(store, hour(2))
    await settle(store, hour(2), Settlement(Id("u1", "digest"), fire, "dead", entry(fire, hour(2), "no")))
    await claim(store, hour(3))
    found = await items(store)
    assert Counter("open_shard" in item for item in found if "fire_nominal" in item) == {True: 1, False: 2}
    assert sorted(item["listed"]["S"].partition("#")[0] for item in await own_items(store)) == ["dead", "waiting"]
    assert [item async for item in store.malformed_items()] == []


async def test_a_wait_that_is_over_leaves_the_schedule_as_cheap_as_before(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule(policy=WAIT))
    (fire,) = owed(await claim(store, hour(1)))
    await claim(store, hour(2))
    assert "spilled" in await head(store, "u1", "digest")
    await settle(store, hour(2), done(fire, hour(2)))
    assert "spilled" not in await head(store, "u1", "digest")
    (fire,) = owed(await lease(store, hour(2)))
    store.client.usage.requests.clear()
    await settle(store, hour(2), done(fire, hour(2)))
    assert len(await claim(store, hour(3))) == 1
    assert store.client.usage.requests["TransactWriteItems"] == 0


@pytest.mark.parametrize("overlap", ["skip", "wait"])
async def test_a_fire_that_is_not_on_the_head_overlaps_as_well(tables: Tables, overlap: Any) -> None:
    store = await tables.open()
    await put(store, schedule(policy=Policy(overlap=overlap)))
    (fire,) = owed(await claim(store, hour(1)))
    assert await store.fires.open(triggered("digest", hour(1.5)))
    assert await settle(store, hour(1.5), done(fire, hour(1.5))) == []
    assert await claim(store, hour(2)) == []
    waiting = await store.fires.list(state="waiting", id=None, owner=None, after=None, limit=9)
    assert [each.nominal_at for each in waiting] == ([hour(2)] if overlap == "wait" else [])
    assert [each.rule for each in await past(store)] == ([None] if overlap == "wait" else ["overlap", None])


async def both_and_one_that_waits(store: DynamodbStore) -> tuple[Fire, Fire]:
    """Open a fire on the head and one with its own item, both leased, and a third that waits for them."""
    await put(store, schedule(policy=WAIT))
    (on_head,) = owed(await claim(store, hour(1)))
    assert await store.fires.open(triggered("digest", hour(1)))
    (beside,) = owed(await lease(store, hour(1)))
    assert await claim(store, hour(2)) == []
    return on_head, beside


@pytest.mark.parametrize("first", ["on the head", "beside it"])
async def test_the_last_of_two_fires_that_is_settled_wakes_the_next_wherever_it_lies(tables: Tables, first: str) -> None:
    store = await tables.open()
    on_head, beside = await both_and_one_that_waits(store)
    for fire in (on_head, beside) if first == "on the head" else (beside, on_head):
        assert await lease(store, hour(1) + 1) == []
        assert await settle(store, hour(2), done(fire, hour(2))) == []
    assert [each.nominal_at for each in await lease(store, hour(2))] == [hour(2)]


async def test_of_two_fires_that_are_settled_at_once_the_last_wakes_the_next(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower one still reads the other as open."""
    store = await tables.open()
    slower, faster = await both_and_one_that_waits(store)

    async def overtaken(*arguments: Any) -> Any:
        seen = await read_owing(*arguments)
        monkeypatch.setattr("tickler.stores.dynamodb.fires.settle.read_owing", read_owing)
        assert await settle(store, hour(2), done(faster, hour(2))) == []
        return seen

    monkeypatch.setattr("tickler.stores.dynamodb.fires.settle.read_owing", overtaken)
    assert await settle(store, hour(2), done(slower, hour(2))) == []
    assert [each.nominal_at for each in await lease(store, hour(2))] == [hour(2)]


async def test_nobody_waits_for_a_fire_beside_the_head_that_was_settled_just_now(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim still reads it as open."""
    store = await tables.open()
    await put(store, schedule(policy=WAIT))
    (on_head,) = owed(await claim(store, hour(1)))
    assert await store.fires.open(triggered("digest", hour(1)))
    (beside,) = owed(await lease(store, hour(1)))
    assert await settle(store, hour(1), done(on_head, hour(1))) == []

    async def overtaken(*arguments: Any) -> Any:
        seen = await read_owing(*arguments)
        monkeypatch.setattr("tickler.stores.dynamodb.fires.multi_fire_claim.read_owing", read_owing)
        assert await settle(store, hour(2), done(beside, hour(2))) == []
        return seen

    monkeypatch.setattr("tickler.stores.dynamodb.fires.multi_fire_claim.read_owing", overtaken)
    assert [each.nominal_at for each in await claim(store, hour(2))] == [hour(2)]


async def test_a_catch_up_is_settled_in_few_requests_although_others_might_have_waited(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule(when=Every(minutes=1), policy=CATCH_UP))
    caught_up = owed(await claim(store, hour(1)))
    store.client.usage.requests.clear()
    assert await settle(store, hour(1), *(done(fire, hour(1)) for fire in caught_up)) == []
    requests = store.client.usage.requests
    assert len(caught_up) == 60
    assert requests["TransactWriteItems"] == 1, "of the one on the head: it leaves a note of what lies beside it"
    assert requests["BatchExecuteStatement"] <= 7
    assert await own_items(store) == []


class Crash(BaseException):
    """Stands for a crash of the process."""


def crash_after(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let this many transactions succeed, and fail all after them."""
    left = number

    async def write(table: Any, writes: Sequence[Write]) -> list[Write]:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        return await write_transaction(table, writes)

    monkeypatch.setattr("tickler.stores.dynamodb.fires.transaction.write_transaction", write)


@pytest.mark.parametrize("crashes_after", [0, 1, 2] if SOAK else [1])
async def test_a_long_catch_up_that_is_cut_short_is_gone_on_with_by_another(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, crashes_after: int
) -> None:
    store = await tables.open()
    await put(store, schedule(when=Every(minutes=1), policy=CATCH_UP))
    with monkeypatch.context() as patch:
        crash_after(patch, crashes_after)
        with pytest.raises(Crash):
            await claim(store, NOW_MS + 250 * MINUTE_MS)
    assert (
        len(await store.fires.list(state="open", id=Id("u1", "digest"), owner=None, after=None, limit=999)) == 90 * crashes_after
    )
    later = await claim(store, NOW_MS + 250 * MINUTE_MS, worker="second")
    assert len(later) == 250 - 90 * crashes_after
    taken = await lease(store, NOW_MS + 250 * MINUTE_MS + LEASE_MS, worker="third")
    assert sorted(each.nominal_at for each in taken) == [NOW_MS + n * MINUTE_MS for n in range(1, 251)]
    assert await claim(store, NOW_MS + 250 * MINUTE_MS) == []


@pytest.mark.parametrize("then", ["done", "dead"])
async def test_a_settlement_that_is_cut_short_leaves_nobody_waiting_for_nothing(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, then: Any
) -> None:
    store = await tables.open()
    await put(store, schedule(policy=WAIT))
    (fire,) = owed(await claim(store, hour(1)))
    await claim(store, hour(2))
    settlement = Settlement(Id("u1", "digest"), fire, then, entry(fire, hour(2), "it failed"))
    with monkeypatch.context() as patch:
        crash_after(patch, 0)
        with pytest.raises(Crash):
            await settle(store, hour(2), settlement)
    assert [each.nominal_at for each in await past(store)] == [hour(1)], "what happened is known"
    assert await store.fires.get(fire.id) == fire
    assert await settle(store, hour(2), settlement) == []
    assert [each.nominal_at for each in await past(store)] == [hour(1)], "and not twice"
    assert [each.nominal_at for each in await lease(store, hour(2))] == [hour(2)]


async def test_an_instant_that_is_claimed_again_while_its_fire_is_open_is_not_opened_twice(tables: Tables) -> None:
    """A clock that is behind can reset a schedule to an instant that was already claimed."""
    store = await tables.open()
    await put(store, schedule(policy=CATCH_UP))
    assert len(await claim(store, hour(3))) == 3
    key = layout.head_key(Id("u1", "digest"))
    values = {":at": {"N": str(hour(1))}}
    request = {"UpdateExpression": "SET next_fire_at = :at", "ExpressionAttributeValues": values}
    await store.client.call("UpdateItem", {"TableName": store.table_name, "Key": key, **request})
    assert [each.nominal_at for each in await claim(store, hour(4), worker="second")] == [hour(4)]
    assert len(await store.fires.list(state="open", id=None, owner=None, after=None, limit=9)) == 4


# Faults.


FAULTS = ["throttle", "throttle_statements", "reset_after"]


@pytest.mark.parametrize("fault", [*FAULTS, "error_500", "reset_before"] if SOAK else FAULTS)
async def test_no_fault_on_the_way_loses_or_repeats_a_fire(tables: Tables, proxy: FaultProxy, fault: str) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    policies = [Policy(), AT_MOST_ONCE, WAIT, Policy(missed="all")]
    await put(store, *(schedule(f"k{n:02}", policy=policies[n % 4], payload="x" * (n % 8) * 300) for n in range(12)))
    setattr(proxy, fault, 0.2)
    for first, last in ((1, 1), (2, 3)):  # on time, and then some of them late
        now_ms = hour(last)
        claims: list[Claim] = []
        while some := await claim(store, now_ms, 5):
            claims += some
        instants = [{last}, {last}, {last}, {first, last}]
        expected = [(f"k{n:02}", hour(at)) for n in range(12) for at in instants[n % 4]]
        assert sorted((each.schedule.key, each.nominal_at) for each in claims) == sorted(expected)
        assert await settle_some(store, now_ms, [retry(fire, now_ms, now_ms + 5) for fire in owed(claims)]) == []
        leased: list[Claim] = []
        while some := await lease(store, now_ms + 5, 5):
            leased += some
        assert sorted(fire.id for fire in owed(leased)) == sorted(fire.id for fire in owed(claims))
        assert {fire.attempt for fire in owed(leased)} == {2}
        lost = await settle_some(store, now_ms + 9, [done(fire, now_ms + 9) for fire in owed(leased)])
        beside = {f"k{n:02}" for n in range(3, 12, 4)}  # to delete an item twice looks like somebody else's doing
        assert {fire.key for fire in lost} <= beside
    setattr(proxy, fault, 0.0)
    assert proxy.served[fault] > 0
    assert await store.fires.list(state="open", id=None, owner=None, after=None, limit=99) == []
    happened = {key: Counter(each.happened for each in await past(store, key)) for key in ("k00", "k01", "k02", "k03")}
    assert happened == {
        "k00": {"skipped": 1, "failed": 2, "delivered": 2},
        "k01": {"skipped": 1},
        "k02": {"skipped": 1, "failed": 2, "delivered": 2},
        "k03": {"failed": 3, "delivered": 3},
    }


async def settle_some(store: DynamodbStore, now_ms: int, settlements: Sequence[Settlement]) -> list[Fire]:
    """Settle in many requests, so that faults can hit some of them."""
    parts = [settlements[start : start + 4] for start in range(0, len(settlements), 4)]
    return [fire for part in parts for fire in await settle(store, now_ms, *part)]


async def look_only(*_: object) -> list[object]:
    """Claim none of the rows that were found."""
    return []


async def test_fires_seen_in_a_stale_index_are_not_taken_again(
    tables: Tables, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await tables.open()
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False)
    await put(first, *(schedule(f"k{n}", policy=CATCH_UP) for n in range(20)))
    await claim(first, hour(2))
    with monkeypatch.context() as patch:
        patch.setattr(second.fires.leaser, "_lease_batch", look_only)
        await lease(second, hour(3))
    taken = owed(await lease(first, hour(3)))
    assert len(taken) == 40
    assert await settle(first, hour(3), *(done(fire, hour(3)) for fire in taken[::2])) == []
    proxy.stale = True
    assert await lease(second, hour(3)) == []
    assert proxy.served["stale"] > 0
    assert await first.fires.list(state="open", id=None, owner=None, after=None, limit=99) == sorted(
        taken[1::2], key=lambda fire: (fire.nominal_at, fire.id)
    )


async def test_schedules_seen_in_a_stale_index_are_not_claimed_again(
    tables: Tables, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await tables.open()
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False)
    policies = [Policy(), AT_MOST_ONCE, WAIT, CATCH_UP]
    await put(first, *(schedule(f"k{n}", policy=policies[n % 4]) for n in range(20)))
    with monkeypatch.context() as patch:
        patch.setattr(second.fires.claimer, "_claim_batch", look_only)
        await claim(second, hour(2))
    assert len(await claim(first, hour(2))) == 25
    proxy.stale = True
    assert await claim(second, hour(2)) == []
    assert proxy.served["stale"] > 0
    assert second.fires.claimer.races_lost == 20


@pytest.mark.parametrize("policy", [Policy(), Policy(attempts=1)], ids=["would be leased", "would be dead"])
@pytest.mark.parametrize("on_head", [True, False])
async def test_a_lease_that_is_extended_at_the_last_moment_is_not_taken_over(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, policy: Policy, on_head: bool
) -> None:
    store = await tables.open()
    await put(store, schedule(policy=policy))
    (fire,) = owed(await claim(store, hour(1)))
    if not on_head:
        (second,) = owed(await claim(store, hour(2)))
        await settle(store, hour(2), done(fire, hour(2)))
        fire = second

    async def overtaken(*arguments: Any) -> Any:
        assert not any(await store.fires.extend([fire], hour(9)))
        return await decide(*arguments)

    decide = store.fires.leaser._lease_batch
    with monkeypatch.context() as patch:
        patch.setattr(store.fires.leaser, "_lease_batch", overtaken)
        assert await lease(store, hour(3)) == []
    assert [each.happened for each in await past(store) if each.fire_id == fire.id] == []
    assert await settle(store, hour(3), done(fire, hour(3))) == []
    assert await store.fires.list(state="dead", id=None, owner=None, after=None, limit=9) == []


async def test_what_is_left_to_others_does_not_cost_a_request_for_each_few(tables: Tables) -> None:
    """Due rows without a target, and rows of excluded owners."""
    store = await tables.open(shards=1)
    rows = [IndexRow("u1", f"row{n:04}", HOURLY, NOW_MS - 5000 + n) for n in range(2000)]
    puts = [{"PutRequest": {"Item": layout.row_head(row, "eu-west-1", 1)}} for row in rows]
    await write_many(store.client, store.table_name, puts)
    await put(store, schedule())
    store.client.usage.requests.clear()
    assert len(await claim(store, hour(1), 10)) == 1
    assert store.client.usage.requests["Query"] <= 12
    assert await next_at(store.fires) == hour(1) + LEASE_MS


async def test_the_fires_of_excepted_owners_do_not_cost_a_request_for_each_few(tables: Tables) -> None:
    store = await tables.open(shards=1)
    await put(store, *(schedule(f"k{n:03}", owner="flood") for n in range(600)))
    assert len(await claim(store, hour(1), 600)) == 600
    await put(store, schedule(when=Cron("1 * * * *")))
    assert len(await claim(store, hour(1) + MINUTE_MS)) == 1
    store.client.usage.requests.clear()
    leased = await store.fires.lease(
        LeaseRequest(now_ms=hour(2), limit=10, worker="other", lease_ms=LEASE_MS, expires_at=KEPT_UNTIL, except_owners={"flood"})
    )
    assert [each.schedule.owner for each in leased] == ["u1"]
    assert store.client.usage.requests["Query"] <= 10


async def test_what_was_left_because_of_the_limit_is_tried_when_others_were_faster(
    tables: Tables, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await tables.open(shards=1)
    second = await tables.open(first.table_name, endpoint=proxy.endpoint, create=False)
    await put(first, *(schedule(f"k{n}", policy=CATCH_UP) for n in range(6)))
    with monkeypatch.context() as patch:
        patch.setattr(second.fires.claimer, "_claim_batch", look_only)
        await claim(second, hour(3), 7)
    taken = [each.schedule.key for each in await claim(first, hour(3), 7)]
    assert len(taken) == 9
    proxy.stale = True
    claims = await claim(second, hour(3), 7)
    assert proxy.served["stale"] > 0
    assert second.fires.claimer.races_lost == 3
    assert sorted({*taken, *(each.schedule.key for each in claims)}) == [f"k{n}" for n in range(6)]
    assert len(claims) == 9


# Ahead of time.


async def test_a_claim_ahead_of_time_that_is_cancelled_is_released_for_its_time(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    await put(store, schedule("least"), schedule("most", policy=AT_MOST_ONCE))
    proxy.only = {"BatchExecuteStatement"}
    proxy.delay_s = 0.3
    work = asyncio.create_task(
        store.fires.claim(
            ClaimRequest(
                now_ms=hour(0.9), limit=9, worker="worker", lease_ms=HOUR_MS, expires_at=KEPT_UNTIL, ahead_ms=HOUR_MS // 10
            )
        )
    )
    while not proxy.served["delay_s"]:
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    proxy.delay_s = 0
    assert await claim(store, hour(1) - 1) == await lease(store, hour(1) - 1) == []
    assert [each.schedule.key for each in await claim(store, hour(1))] == ["most"]
    assert [(each.due_at, each.fire and each.fire.attempt) for each in await lease(store, hour(1))] == [(hour(1), 1)]


# Schedules that do not read. The index has only a part of them.


async def spoil(store: DynamodbStore, key: str) -> None:
    """Write into the body of a schedule behind the store's back, on the head or in its body item."""
    found = await head(store, "u1", key)
    place = layout.body_key(Id("u1", key), found["body_revision"]) if "body_revision" in found else layout.head_key(Id("u1", key))
    change = {"UpdateExpression": "SET body = :body", "ExpressionAttributeValues": {":body": {"S": '{"target":'}}}
    await store.client.call("UpdateItem", {"TableName": store.table_name, "Key": place, **change})


@pytest.mark.parametrize("payload_bytes", [10, 2000])
@pytest.mark.parametrize("policy", [Policy(), AT_MOST_ONCE, WAIT], ids=["at least once", "at most once", "wait"])
async def test_a_schedule_that_turns_out_not_to_read_is_set_aside_as_it_was(
    tables: Tables, policy: Policy, payload_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    store = await tables.open()
    declared = schedule("bad", policy=policy, payload="x" * payload_bytes)
    await put(store, declared, schedule("good"))
    await spoil(store, "bad")
    assert [each.schedule.key for each in await claim(store, hour(1))] == ["good"]
    assert "u1/bad" in caplog.text
    assert [(each.key, each.next_fire_at) for each in await store.index.set_aside()] == [("bad", hour(1))]
    fires = await store.fires.list(state="open", id=None, owner=None, after=None, limit=9)
    assert [fire.key for fire in fires] == ["good"]
    await put(store, declared)
    assert [(each.schedule.key, each.schedule.payload) for each in await claim(store, hour(1))] == [("bad", declared.payload)]
    assert await store.index.set_aside() == []


async def test_a_schedule_that_turns_out_not_to_read_opens_none_of_its_many_fires(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule("bad", policy=CATCH_UP), schedule("good", policy=CATCH_UP))
    await spoil(store, "bad")
    assert {each.schedule.key for each in await claim(store, hour(3))} == {"good"}
    assert {item["pk"]["S"] for item in await own_items(store)} == {"fires#u1\tgood"}
    assert [(each.key, each.next_fire_at) for each in await store.index.set_aside()] == [("bad", hour(1))]


async def test_many_fires_of_a_large_schedule_that_does_not_read_stop_with_those_it_has(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule("bad", policy=CATCH_UP, payload="x" * 2000), schedule("good", policy=CATCH_UP))
    await spoil(store, "bad")
    assert {each.schedule.key for each in await claim(store, hour(3))} == {"good"}
    assert [each.key for each in await store.index.set_aside()] == ["bad"]
    assert await claim(store, hour(9)) != []
    assert len([item for item in await own_items(store) if item["pk"]["S"] == "fires#u1\tbad"]) == 2, "and one on the head"


async def test_a_claim_that_is_cancelled_releases_what_it_took(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    await put(store, schedule("least"), schedule("most", policy=AT_MOST_ONCE), schedule("all", policy=CATCH_UP))
    await put(store, schedule("last", At("2030-11-20T13:00:00Z"), policy=AT_MOST_ONCE))
    proxy.only = {"BatchExecuteStatement"}
    proxy.delay_s = 0.3
    work = asyncio.create_task(claim(store, hour(1)))
    while not proxy.served["delay_s"]:
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    proxy.delay_s = 0
    assert sorted(each.schedule.key for each in await claim(store, hour(1))) == ["last", "most"]
    leased = await lease(store, hour(1))
    assert sorted((each.schedule.key, each.fire.attempt) for each in leased if each.fire) == [("all", 1), ("least", 1)]
    assert await past(store, "least") == [], "nobody was away"


async def test_a_lease_that_is_cancelled_releases_what_it_took(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint)
    await put(store, schedule())
    assert await store.fires.open(triggered("digest", NOW_MS))
    proxy.only = {"BatchExecuteStatement"}
    proxy.delay_s = 0.3
    work = asyncio.create_task(lease(store, NOW_MS))
    while not proxy.served["delay_s"]:
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    proxy.delay_s = 0
    (fire,) = owed(await lease(store, NOW_MS))
    assert fire.attempt == 1


async def test_what_was_claimed_before_a_failure_is_returned_and_not_lost(
    tables: Tables, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    store = await tables.open(endpoint=proxy.endpoint, attempts=1)
    direct = await tables.open(store.table_name, create=False)
    await put(direct, *(schedule(f"k{n:03}", policy=AT_MOST_ONCE) for n in range(200)))
    proxy.only = {"BatchExecuteStatement"}
    proxy.reset_before = 0.4
    claims = await claim(store, hour(1))
    assert proxy.served["reset_before"] > 0
    assert 0 < len(claims) < 200
    assert "then failed" in caplog.text
    claims += await claim(direct, hour(1))
    assert sorted(each.schedule.key for each in claims) == [f"k{n:03}" for n in range(200)]


async def test_claims_whose_bodies_cannot_be_read_are_reverted(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await tables.open()
    await put(store, schedule("most", policy=AT_MOST_ONCE, payload="x" * 2000), schedule("least", payload="x" * 2000))

    async def unreadable(*_: Any) -> list[Item]:
        raise StoreUnavailable("not this time")

    with monkeypatch.context() as patch:
        patch.setattr("tickler.stores.dynamodb.fires.claim.get_many", unreadable)
        with pytest.raises(StoreUnavailable):
            await claim(store, hour(1))
    assert [each.schedule.key for each in await claim(store, hour(1))] == ["most"]
    assert [each.schedule.key for each in await lease(store, hour(1) + LEASE_MS)] == ["least"]


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_claim_has_the_body_that_was_put_behind_its_back_and_no_claim_of_what_was_deleted(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    store = await tables.open()
    await put(store, schedule(payload="x" * 2000))

    async def overtaken(*arguments: Any) -> list[Item]:
        if deleted:
            await Schedules(store.schedules, ManualClock(NOW_MS)).delete("u1", "digest")
        else:
            await put(store, schedule(payload="y" * 2000))
        return await get_many(*arguments)

    monkeypatch.setattr("tickler.stores.dynamodb.fires.claim.get_many", overtaken)
    assert [each.schedule.payload for each in await claim(store, hour(1))] == ([] if deleted else ["y" * 2000])


async def test_a_settlement_that_fails_half_way_can_be_repeated_and_is_remembered_once(tables: Tables, proxy: FaultProxy) -> None:
    store = await tables.open(endpoint=proxy.endpoint, attempts=1)
    direct = await tables.open(store.table_name, create=False)
    await put(direct, *(schedule(f"k{n:02}") for n in range(60)))
    settlements = [done(fire, hour(1)) for fire in owed(await claim(direct, hour(1)))]
    proxy.only = {"BatchExecuteStatement"}
    proxy.reset_after = 0.3
    for _ in range(20):
        try:
            await settle(store, hour(1), *settlements)
            break
        except StoreUnavailable:
            continue
    assert proxy.served["reset_after"] > 0
    assert await direct.fires.list(state="open", id=None, owner=None, after=None, limit=99) == []
    assert {len(await past(direct, f"k{n:02}")) for n in range(60)} == {1}


async def test_an_item_that_a_foreign_hand_has_put_among_the_open_ones_blocks_nothing(
    tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    store = await tables.open(shards=1)
    item = {"pk": {"S": "mine"}, "sk": {"S": "own"}, "open_shard": {"S": "eu-west-1#0"}, "deliver_after": {"N": "1"}}
    await store.client.call("PutItem", {"TableName": store.table_name, "Item": item})
    await put(store, schedule())
    assert await store.fires.open(triggered("digest", NOW_MS))
    assert len(await lease(store, NOW_MS, 1)) == 1
    assert "which Tickler did not write" in caplog.text


# Schedules that go.


async def test_a_deleted_schedule_takes_hundreds_of_fires_along(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule(when=Every(minutes=1), policy=CATCH_UP, payload="x" * 2000), schedule("stays"))
    assert len(await claim(store, NOW_MS + 150 * MINUTE_MS)) == 151
    await Schedules(store.schedules, ManualClock(NOW_MS)).delete("u1", "digest")
    assert await own_items(store) == []
    assert [item["sk"]["S"] for item in await items(store) if item["pk"]["S"] == "owner#u1"] == ["head\tu1\tstays"]
    cancelled = [each for each in await past(store) if each.happened == "cancelled"]
    assert sorted(each.nominal_at for each in cancelled) == [NOW_MS + n * MINUTE_MS for n in range(1, 151)]
    assert [each.schedule.key for each in await lease(store, hour(9))] == ["stays"]


async def test_a_fire_that_is_opened_while_its_schedule_is_deleted_goes_with_it(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await tables.open()
    await put(store, schedule())

    async def overtaken(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr("tickler.stores.dynamodb.schedules.writes.cancellations", cancellations)
        planned = await cancellations(*arguments, **options)
        assert await store.fires.open(triggered("digest", NOW_MS))
        return planned

    monkeypatch.setattr("tickler.stores.dynamodb.schedules.writes.cancellations", overtaken)
    assert await Schedules(store.schedules, ManualClock(NOW_MS)).delete("u1", "digest")
    assert [item for item in await items(store) if "fire_nominal" in item] == []
    assert [each.happened for each in await past(store)] == ["cancelled"]


@pytest.mark.parametrize("before", ["nothing", "a dead one"])
async def test_a_fire_that_is_opened_while_its_finished_schedule_goes_keeps_it(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    store = await tables.open()
    await put(store, schedule(when=At("2030-11-20T13:00:00Z")))
    (fire,) = owed(await claim(store, hour(1)))
    if before == "a dead one":  # there was one, and it was cancelled: only the mark of it is left
        assert await store.fires.open(triggered("digest", NOW_MS))
        (second,) = owed(await lease(store, NOW_MS))
        await settle(store, hour(1), Settlement(Id("u1", "digest"), second, "dead", None))
        await store.fires.change(second.id, "cancelled", hour(1), expires_at=KEPT_UNTIL)

    async def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr("tickler.stores.dynamodb.fires.settle.write_all", write_all)
        assert await store.fires.open(triggered("digest", hour(1)))
        return await write_all(*arguments)

    monkeypatch.setattr("tickler.stores.dynamodb.fires.settle.write_all", overtaken)
    assert await settle(store, hour(1), done(fire, hour(1), delete_schedule=True)) == []
    assert await Schedules(store.schedules, ManualClock(NOW_MS)).get("u1", "digest") is not None
    assert [each.nominal_at for each in await lease(store, hour(1))] == [hour(1)]


async def test_a_fire_whose_schedule_a_foreign_hand_has_deleted_is_cancelled_when_its_time_comes(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule())
    await claim(store, hour(1))
    (second,) = owed(await claim(store, hour(2)))
    await store.client.call("DeleteItem", {"TableName": store.table_name, "Key": layout.head_key(Id("u1", "digest"))})
    assert await lease(store, hour(3)) == []
    assert await own_items(store) == []
    assert sorted(each.happened for each in await past(store) if each.fire_id == second.id) == ["cancelled", "expired"]


# Shards and regions.


async def test_fires_that_were_open_when_shards_were_raised_are_found_and_new_ones_use_them(tables: Tables) -> None:
    store = await tables.open(shards=2, refresh_ms=50)
    await put(store, *(schedule(f"k{n:02}", policy=CATCH_UP) for n in range(30)))
    before = await claim(store, hour(2))
    assert len(before) == 60
    mover = DynamodbStore(store.table_name, store.client.address, label="dynamodb://t")
    await mover.reshard(16)
    await asyncio.sleep(0.06)  # a refresh period of the store's
    after = await claim(store, hour(3))
    assert len(after) == 30
    shards = {int(item["open_shard"]["S"].partition("#")[2]) for item in await items(store) if "open_shard" in item}
    assert max(shards) >= 2, "nothing new uses the new shards, so nothing was shown"
    leased = await lease(store, hour(4))
    assert {fire.id for fire in owed(leased)} == {fire.id for fire in owed([*before, *after])}
    assert await settle(store, hour(4), *(done(fire, hour(4)) for fire in owed(leased))) == []
    assert await next_at(store.fires) == hour(4)


async def test_open_fires_are_their_home_regions_and_move_with_it(dynamodb_server: DynamodbServer, tables: Tables) -> None:
    if not dynamodb_server.is_judge:
        pytest.skip(f"{dynamodb_server.engine} keeps the tables of regions apart, so there is no replica to look at")
    paris = await tables.open(region="eu-west-3")
    oregon = await tables.open(paris.table_name, region="us-west-2")
    await put(paris, *(schedule(f"k{n}", policy=CATCH_UP) for n in range(5)))
    await put(oregon, schedule("stays"))
    assert len(await claim(paris, hour(2))) == 10
    assert len(await claim(oregon, hour(2))) == 1
    assert [each.schedule.key for each in await lease(oregon, hour(3))] == ["stays"]
    mover = DynamodbStore(paris.table_name, oregon.client.address, label="dynamodb://t")
    await mover.move_home("us-west-2", "eu-west-3")
    assert await lease(paris, hour(3)) == []
    leased = await lease(oregon, hour(3))
    assert sorted((each.schedule.key, each.nominal_at) for each in leased) == [
        (f"k{n}", hour(at)) for n in range(5) for at in (1, 2)
    ]
    assert await settle(oregon, hour(3), *(done(fire, hour(3)) for fire in owed(leased))) == []
    assert await own_items(oregon) == []


# The table.


async def test_a_table_from_before_there_were_fires_is_refused_with_what_to_do(tables: Tables) -> None:
    store = await tables.open()
    request = {"UpdateExpression": "SET #schema = :one", "ExpressionAttributeNames": {"#schema": "schema"}}
    values = {"ExpressionAttributeValues": {":one": {"N": "1"}}}
    await store.client.call("UpdateItem", {"TableName": store.table_name, "Key": SETTINGS_KEY, **request, **values})
    with pytest.raises(SchemaMismatch, match="create another table"):
        await tables.open(store.table_name)
    with pytest.raises(SchemaMismatch, match="create another table"):
        await DynamodbStore(store.table_name, store.client.address, label="dynamodb://t").migrate()


async def test_what_happened_has_a_time_to_live(tables: Tables) -> None:
    store = await tables.open()
    await put(store, schedule())
    (fire,) = owed(await claim(store, hour(1)))
    await settle(store, hour(1), done(fire, hour(1)))
    (kept,) = [item for item in await items(store) if item["pk"]["S"].startswith("past#")]
    assert kept["ttl"] == {"N": str(KEPT_UNTIL // 1000)}
    assert store.capabilities.prunes_itself
    assert await store.fires.prune(KEPT_UNTIL + 1) == 0


async def test_schedules_from_before_their_bytes_were_kept_count_as_the_largest_there_may_be(tables: Tables) -> None:
    store = await tables.open()
    await put(store, *(schedule(f"k{n}", policy=policy) for n, policy in enumerate([Policy()] * 3 + [AT_MOST_ONCE] * 3)))
    for n in range(6):
        key = layout.head_key(Id("u1", f"k{n}"))
        values = {":unknown": {"BOOL": True}}
        request = {"UpdateExpression": "SET has_target = :unknown", "ExpressionAttributeValues": values}
        await store.client.call("UpdateItem", {"TableName": store.table_name, "Key": key, **request})
    half = layout.MAX_BODY_BYTES * 5 // 2
    claims = [
        await store.fires.claim(
            ClaimRequest(now_ms=hour(1), limit=100, worker="w", lease_ms=LEASE_MS, expires_at=KEPT_UNTIL, max_bytes=half)
        )
        for _ in range(4)
    ]
    assert [len(some) for some in claims] == [2, 2, 2, 0]
    at = hour(1) + LEASE_MS
    leases = [
        await store.fires.lease(
            LeaseRequest(now_ms=at, limit=100, worker="w", lease_ms=LEASE_MS, expires_at=KEPT_UNTIL, max_bytes=half)
        )
        for _ in range(3)
    ]
    assert [len(some) for some in leases] == [2, 1, 0]


async def test_the_failing_schedules_of_an_owner_cost_nothing_for_what_is_dead_of_others(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await tables.open()
    await put(store, *(schedule(f"k{n}", owner=owner) for n in range(5) for owner in ("u1", "u2")))
    for fire in owed(await claim(store, hour(1))):
        await settle(store, hour(1), Settlement(fire.schedule_id, fire, "dead", entry(fire, hour(1), "it answered 410")))
    asked: list[dict[str, Any]] = []
    call = store.client.call

    async def noted(operation: str, request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return await call(operation, request)

    monkeypatch.setattr(store.client, "call", noted)
    found = await store.schedules.list(owner="u1", state=None, after=Id("u1", "k0"), limit=3, failing=True)
    assert [each.key for each in found] == ["k1", "k2", "k3"]
    assert [request for request in asked if "IndexName" in request] == []
