"""`t.send` as callers use it: what is checked, what is compared, and what else of a Tickler knows a send."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from deliver.at_work import Bench
from deliver.virtual_time import in_virtual_time
from msgspec.structs import replace
from table.dropping import drop
from table.joined_shop import Order, reminder, shop

import tickler
from tickler import HttpTarget, InvalidInput, InvalidSchedule, NeverFires, Policy, PythonTarget, Schedule, Tickler
from tickler.clock import ManualClock
from tickler.errors import SendConflict, TransactionConflict
from tickler.model.fire import MAX_OPEN_MS, fire_id
from tickler.model.target import REDACTED
from tickler.records.kinds import SEND
from tickler.transfer.copy import Copy
from tickler.webhooks.encryption import Encryption

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOOK = "https://example.org/hook"
SECRET = HttpTarget(HOOK, headers={"authorization": "Bearer one"})
KEYS = [tickler.new_key() for _ in range(3)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    """On each of the stores."""
    async with tickler.connect(any_url, clock=clock) as opened:
        yield opened


@pytest.fixture
async def in_memory(clock: ManualClock) -> AsyncIterator[Tickler]:
    """Where the store does not matter."""
    async with tickler.connect("memory://", clock=clock) as opened:
        yield opened


# What is sent.


async def test_a_receiver_gets_the_send_under_the_id_that_was_returned() -> None:
    got: list[tuple[str, Any]] = []

    async def receive(request: web.Request) -> web.Response:
        got.append((request.headers["webhook-id"], await request.json()))
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    async with tickler.connect("sqlite://", allow_networks=["127.0.0.0/8"]) as t:
        sent = await t.send("u1", "welcome", HttpTarget(url, body="raw"), {"name": "Ada"})
        await t.tick()
        assert await t.send("u1", "welcome", HttpTarget(url, body="raw"), {"name": "Ada"}) == replace(sent, is_new=False)
        await t.tick()
        (entry,) = (await t.fires.history("u1", "welcome")).items
    await runner.cleanup()
    assert got == [(sent.fire_id, {"name": "Ada"})]
    assert (entry.happened, entry.fire_id, entry.nominal) == ("delivered", sent.fire_id, sent.nominal)


@in_virtual_time
async def test_a_send_wakes_the_runners_of_this_process() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(100.3)  # by now it asks twice a second only
        await bench.tickler.send("u1", "welcome", PythonTarget("work"))
        await bench.until_arrived(1)
    assert bench.arrived[0].late_ms <= 5


@pytest.mark.parametrize("how", ["send", "trigger"])
@in_virtual_time
async def test_runners_are_woken_when_a_transaction_has_been_committed(how: str) -> None:
    bench = Bench()
    await bench.put(Schedule(owner="u1", key="rare", when="@yearly", target=PythonTarget("work")))
    async with bench.running(), shop.connect(bench.tickler) as db:
        await asyncio.sleep(100.3)
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            if how == "send":
                await bench.tickler.send("u1", "welcome", PythonTarget("work"), using=tx)
            else:
                await bench.tickler.trigger("u1", "rare", using=tx)
            await asyncio.sleep(10)
            assert bench.arrived == []
            committed_at = bench.clock.now_ms()
        await bench.until_arrived(1)
    assert bench.arrived[0].at_ms - committed_at <= 5


async def test_a_send_that_may_be_lost_has_no_fire_and_is_remembered_all_the_same(in_memory: Tickler) -> None:
    got: list[object] = []
    in_memory.handler("work")(lambda fire: got.append(fire.id))
    policy = Policy(delivery="at-most-once")
    sent = await in_memory.send("u1", "welcome", PythonTarget("work"), policy=policy)
    await in_memory.tick()
    again = await in_memory.send("u1", "welcome", PythonTarget("work"), policy=policy)
    assert (again, got) == (replace(sent, is_new=False), [sent.fire_id])


async def test_a_send_for_later_goes_at_its_instant(t: Tickler, clock: ManualClock) -> None:
    got: list[object] = []
    t.handler("work")(lambda fire: got.append(fire.id))
    at = datetime(2030, 11, 20, 14, 5, tzinfo=UTC)
    sent = await t.send("u1", "later", PythonTarget("work"), at=at)
    assert (sent.nominal, sent.fire_id) == (at, fire_id("u1", "later", sent.nominal_at))
    await t.tick()
    assert got == []
    clock.set(at)
    await t.tick()
    assert got == [sent.fire_id]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.send("", "k", HOOK), InvalidSchedule, "owner: is empty"),
        (lambda t: t.send("u1", "a\nb", HOOK), InvalidSchedule, "key: .*control characters"),
        (lambda t: t.send("u1", "k", None), InvalidSchedule, "target: is missing: pass a URL"),
        (lambda t: t.send("u1", "k", "ftp://x"), InvalidSchedule, "target.url: must start with http"),
        (lambda t: t.send("u1", "k", HOOK, object()), InvalidSchedule, "payload: is not plain JSON"),
        (lambda t: t.send("u1", "k", HOOK, "x" * 300_000), InvalidSchedule, "payload: has 300002 bytes"),
        (lambda t: t.send("u1", "k", HOOK, at="now"), InvalidInput, "at: "),
        (lambda t: t.send("u1", "k", HOOK, at=datetime(2030, 1, 1)), InvalidInput, "at: .*naive"),
        (lambda t: t.send("u1", "k", HOOK, policy={}), InvalidSchedule, "policy: is a dict: pass a Policy"),
        (lambda t: t.send("u1", "k", SECRET), InvalidSchedule, "target.headers: must be encrypted"),
        (lambda t: t.send("u1", "k", HOOK, using="connection"), InvalidInput, "using= "),
    ],
)
async def test_what_cannot_be_sent_is_refused_and_leaves_no_trace(
    in_memory: Tickler, call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await call(in_memory)
    assert (await in_memory.schedules.list()).items == []
    assert await in_memory.records.list(SEND) == []


# What is compared.


async def test_what_a_send_remembers_is_small_and_contains_nothing_of_its_content(
    any_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect(any_url, clock=clock, keep_history=timedelta(days=3)) as t:
        await t.send("u1", "code", SECRET, {"code": "493201", "more": "x" * 5_000})
        await t.send("u1", "same", SECRET, {"code": "493201", "more": "x" * 5_000})
        one, other = await t.records.list(SEND)
    assert isinstance(one.value, dict)
    assert isinstance(other.value, dict)
    assert set(one.value) == {"nominal_at", "digest"}
    assert len(str(one.value)) + len(one.name) < 200
    assert one.value["digest"] != other.value["digest"], "equal content is not seen to be equal"
    assert one.expires_at == NOW_MS + MAX_OPEN_MS + 3 * 86_400_000


@pytest.mark.parametrize(
    "keys", [KEYS[0], f"{KEYS[1]},{KEYS[0]}", f"{KEYS[1]},{KEYS[2]},{KEYS[0]}"], ids=["same", "rotated", "twice"]
)
async def test_a_send_is_the_same_after_the_key_was_rotated(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect(sqlite_url, clock=clock) as t:
        sent = await t.send("u1", "welcome", SECRET, 1)
    monkeypatch.setenv("TICKLER_KEY", keys)
    async with tickler.connect(sqlite_url, clock=clock) as t:
        assert await t.send("u1", "welcome", SECRET, 1) == replace(sent, is_new=False)
        for target in (HttpTarget(HOOK, headers={"authorization": "Bearer two"}), HttpTarget(HOOK)):
            with pytest.raises(SendConflict, match="other content"):
                await t.send("u1", "welcome", target, 1)


@pytest.mark.parametrize("keys", ["", KEYS[1]], ids=["no key", "another key"])
async def test_a_send_that_cannot_be_compared_is_refused_and_names_the_key(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect(sqlite_url, clock=clock) as t:
        await t.send("u1", "welcome", HOOK, 1)
    monkeypatch.setenv("TICKLER_KEY", keys)
    async with tickler.connect(sqlite_url, clock=clock) as t:
        with pytest.raises(InvalidInput, match=r"u1/welcome: cannot be compared .* add the key of that time to TICKLER_KEY"):
            await t.send("u1", "welcome", HOOK, 1)


async def test_a_send_from_before_there_was_a_key_is_still_the_same(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TICKLER_KEY", raising=False)
    async with tickler.connect(sqlite_url, clock=clock) as t:
        sent = await t.send("u1", "welcome", HOOK, 1)
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect(sqlite_url, clock=clock) as t:
        assert await t.send("u1", "welcome", HOOK, 1) == replace(sent, is_new=False)
        with pytest.raises(SendConflict):
            await t.send("u1", "welcome", HOOK, 2)


async def test_the_secrets_of_a_send_are_stored_encrypted_for_its_owner(
    any_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect(any_url, clock=clock) as t:
        await t.send("u1", "welcome", SECRET)
        stored = await t.schedules.get("u1", "welcome")
        assert stored is not None
        assert isinstance(stored.target, HttpTarget)
        assert stored.target.headers == {"authorization": REDACTED}
        assert stored.target.sealed
        assert Encryption([KEYS[0]]).decrypt_target(stored.target, "u1") == SECRET
        with pytest.raises(InvalidSchedule, match="another owner"):
            await t.send("u2", "welcome", stored.target)


async def test_a_target_that_was_read_from_a_schedule_is_compared_by_its_secrets(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKLER_KEY", KEYS[0])
    async with tickler.connect("memory://", clock=clock) as t:
        stored = await t.schedules.put(Schedule(owner="u1", key="hourly", when="@hourly", target=SECRET))
        assert isinstance(stored.target, HttpTarget)
        assert stored.target.sealed is not None
        sent = await t.send("u1", "welcome", stored.target, 1)
        assert await t.send("u1", "welcome", SECRET, 1) == replace(sent, is_new=False)


# What else knows a send.


async def test_a_send_is_listed_explained_and_healthy(t: Tickler) -> None:
    await t.send("u1", "welcome", HOOK, 1)
    (listed,) = (await t.schedules.list(owner="u1")).items
    assert (listed.key, listed.state, listed.next_fire_at, listed.delete_after) == ("welcome", "active", NOW_MS, True)
    assert "has been due" in str(await t.why("u1", "welcome"))
    found = {finding.check for finding in (await t.doctor(deep=True, repair=True)).findings}
    assert found <= {"no-worker", "unserved"}, "nothing to repair about the schedule itself"
    (listed,) = (await t.schedules.list(owner="u1")).items
    assert (listed.state, listed.next_fire_at) == ("active", NOW_MS)


async def test_a_send_that_is_deleted_before_it_goes_is_not_delivered(t: Tickler) -> None:
    got: list[object] = []
    t.handler("work")(got.append)
    sent = await t.send("u1", "welcome", PythonTarget("work"))
    assert await t.schedules.delete("u1", "welcome") is True
    await t.tick()
    assert got == []
    assert await t.send("u1", "welcome", PythonTarget("work")) == replace(sent, is_new=False)


async def test_a_send_that_is_paused_is_held_and_can_be_triggered(t: Tickler, clock: ManualClock) -> None:
    got: list[object] = []
    t.handler("work")(lambda fire: got.append(fire.payload))
    await t.send("u1", "welcome", PythonTarget("work"), 1)
    await t.schedules.pause("u1", "welcome")
    clock.advance(60)
    await t.tick()
    assert got == []
    with pytest.raises(NeverFires, match="its only instant"):
        await t.schedules.resume("u1", "welcome")
    await t.trigger("u1", "welcome")
    await t.tick()
    assert got == [1]


async def test_a_send_that_failed_is_sent_again_by_its_fire(t: Tickler, clock: ManualClock) -> None:
    outcomes = iter([ValueError("no"), None])

    async def work(fire: object) -> None:
        if (error := next(outcomes)) is not None:
            raise error

    t.handler("work")(work)
    sent = await t.send("u1", "welcome", PythonTarget("work"), policy=Policy(attempts=1))
    await t.tick()
    (dead,) = (await t.fires.list(state="dead")).items
    assert dead.id == sent.fire_id
    clock.advance(1)
    assert await t.send("u1", "welcome", PythonTarget("work"), policy=Policy(attempts=1)) == replace(sent, is_new=False)
    await t.fires.retry(sent.fire_id)
    clock.advance(1)
    await t.tick()
    assert await t.schedules.get("u1", "welcome") is None
    assert [entry.happened for entry in (await t.fires.history("u1", "welcome")).items] == ["delivered", "retried", "failed"]


async def test_a_copy_of_a_store_remembers_its_sends(t: Tickler, clock: ManualClock) -> None:
    sent = await t.send("u1", "welcome", HOOK, 1)
    async with tickler.connect("memory://", clock=clock) as target:
        copy = Copy(t.store, target.store, "source", clock.now_ms, lambda *_: None)
        await copy.begin()
        await copy.run()
        assert await target.send("u1", "welcome", HOOK, 1) == replace(sent, is_new=False)
        (claim,) = await target.fires.claim(NOW_MS, worker="one", lease_ms=1_000)
        assert claim.fire is not None
        assert claim.fire.id == sent.fire_id


async def test_records_of_sends_cannot_be_written_by_callers(in_memory: Tickler) -> None:
    await in_memory.send("u1", "welcome", HOOK)
    (record,) = await in_memory.records.list(SEND)
    with pytest.raises(InvalidInput, match="reserved"):
        await in_memory.records.delete(SEND, record.name)


# In a transaction.


async def test_an_order_its_schedules_its_sends_a_trigger_and_a_record_are_written_together(t: Tickler) -> None:
    await t.schedules.put(Schedule(owner="shop", key="report", when="@yearly", target=HOOK))
    async with shop.connect(t, name=f"sent_{time.monotonic_ns()}", create=True) as db:
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(reminder("1"), using=tx)
            sent = [await t.send("shop", f"mail-{n}", HOOK, {"order": "1"}, using=tx) for n in range(2)]
            fired = await t.trigger("shop", "report", using=tx)
            await t.records.put("order", "last", "1", using=tx)
            assert [each.key for each in (await t.schedules.list(owner="shop")).items] == ["report"]
        assert await db.get(Order.key.id("1")) == Order(id="1")
        assert [each.key for each in (await t.schedules.list(owner="shop")).items] == ["1", "mail-0", "mail-1", "report"]
        assert [each.id for each in (await t.fires.list()).items] == [fired.id]
        claimed = [claim.fire.id for claim in await t.fires.claim(NOW_MS, worker="one", lease_ms=1_000) if claim.fire is not None]
        assert sorted(claimed) == sorted(each.fire_id for each in sent)
        await drop(db)


async def test_one_part_that_conflicts_undoes_all(t: Tickler) -> None:
    async with shop.connect(t, name=f"sent_{time.monotonic_ns()}", create=True) as db:

        async def attempt() -> None:
            async with db.transaction() as tx:
                tx.put(Order(id="1"))
                await t.send("shop", "mail", HOOK, using=tx)
                await t.records.put("order", "last", "1", using=tx)
                await t.records.put("order", "last", "2")

        with pytest.raises(TransactionConflict, match="the record order/last"):
            await attempt()
        assert await db.get(Order.key.id("1")) is None
        assert (await t.schedules.list(owner="shop")).items == []
        assert (await t.send("shop", "mail", HOOK, "other")).is_new
        await drop(db)


async def test_a_schedule_that_is_put_in_a_transaction_cannot_be_triggered_in_the_same(in_memory: Tickler) -> None:
    async with shop.connect(in_memory) as db, db.transaction() as tx:
        await in_memory.schedules.put(reminder("1"), using=tx)
        with pytest.raises(InvalidInput, match="shop/1 is in this transaction already"):
            await in_memory.trigger("shop", "1", using=tx)


async def test_a_schedule_is_put_and_triggered_in_a_transaction_of_ones_own(sqlite_url: str) -> None:
    async with tickler.connect(sqlite_url) as t:
        own = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        own.execute("BEGIN")
        await t.schedules.put(Schedule(owner="shop", key="1", when="@yearly", target=HOOK), using=own)
        fire = await t.trigger("shop", "1", using=own)
        own.execute("COMMIT")
        own.close()
        assert [each.id for each in (await t.fires.list()).items] == [fire.id]


async def test_more_than_dynamodb_takes_in_one_transaction_is_refused_by_number(dynamodb_url: str) -> None:
    async with tickler.connect(dynamodb_url) as t, shop.connect(t, name=f"sent_{time.monotonic_ns()}", create=True) as db:

        async def attempt(name: str, number: int) -> None:
            async with db.transaction() as tx:
                for n in range(number):
                    await t.send("u1", f"{name}{n}", HOOK, using=tx)

        await attempt("few", 50)
        with pytest.raises(InvalidInput, match="a transaction has 102 operations, and DynamoDB takes 100"):
            await attempt("many", 51)
        assert len((await t.schedules.list(owner="u1", limit=1000)).items) == 50
        await drop(db)


# Several processes, and none of await.


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
async def test_of_two_processes_that_send_the_same_one_does(any_url: str) -> None:
    number = 20
    async with tickler.connect(any_url) as t:
        command = [sys.executable, "-m", "sends.sender", any_url, str(number)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": Path(__file__).parent.parent}
        processes = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        one, other = ([line.split() for line in answer.decode().splitlines()] for answer, _ in answers)
        assert [a[1] for a in one] == [b[1] for b in other], "both name the same fires"
        assert [int(a[0]) + int(b[0]) for a, b in zip(one, other, strict=True)] == [1] * number
        assert len((await t.schedules.list(owner="u1", limit=1000)).items) == number


def test_it_works_without_await(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with tickler.connect_sync(f"sqlite:///{path}") as t:
        sent = t.send("u1", "welcome", HOOK, {"n": 1})
        assert t.send("u1", "welcome", HOOK, {"n": 1}) == replace(sent, is_new=False)
        own = sqlite3.connect(path, isolation_level=None)
        own.execute("BEGIN")
        t.send("u1", "receipt", HOOK, using=own)
        own.execute("ROLLBACK")
        own.close()
        assert t.schedules.get("u1", "receipt") is None
        with shop.connect_sync(t) as db, db.transaction() as tx:
            tx.put(Order(id="1"))
            t.send("u1", "receipt", HOOK, using=tx)
            t.trigger("u1", "welcome", using=tx)
            t.records.put("order", "last", "1", using=tx)
        assert t.schedules.get("u1", "receipt").state == "active"
        assert [fire.key for fire in t.fires.list().items] == ["welcome"]
