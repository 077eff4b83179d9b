"""Conformance kit of a store of sends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tickler.clock import ManualClock
from tickler.errors import InvalidInput, SendConflict, TransactionConflict
from tickler.model.fire import HISTORY_RETENTION_MS, MAX_OPEN_MS, fire_id
from tickler.model.policy import DEFAULT_POLICY, Policy
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.schedules.schedules import Schedules
from tickler.sends.contract import record_name
from tickler.sends.sends import SendOptions, Sends, Sent
from tickler.stores.store import Store
from tickler.testing.fire_fixtures import FireFixtures, Worker
from tickler.testing.fire_queries import fires_of
from tickler.testing.hourly import schedule
from tickler.testing.settlements import dead, done
from tickler.testing.store_contract import HOUR_MS, NOW_MS, Begin, stored

HOOK = "https://example.org/welcome"


class Sender:
    """Sends for one owner, and looks at what that left in the store."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self._store = store
        self._clock = clock
        self._sends = Sends(store.sends, clock)

    async def send(
        self,
        key: str = "welcome",
        payload: object = None,
        *,
        using: object = None,
        at: int | None = None,
        policy: Policy = DEFAULT_POLICY,
    ) -> Sent:
        return await self._sends.send(Id("u1", key), HOOK, payload, SendOptions(at, policy), using=using)

    async def traces(self, key: str = "welcome") -> tuple[bool, bool, bool]:
        """Return whether its schedule, its index row and its record are there, which are written together."""
        id, now_ms = Id("u1", key), self._clock.now_ms()
        rows, _ = await self._store.index.walk(None, 1_000)
        record = await self._store.records.get(SEND, record_name(id), now_ms=now_ms)
        return await self._store.schedules.get(id) is not None, id in [Id(row.owner, row.key) for row in rows], record is not None


ALL, NOTHING, REMEMBERED = (True, True, True), (False, False, False), (False, False, True)


class SendStoreContract(FireFixtures):
    """Requirements on a store of sends. `StoreContract` documents the fixtures."""

    @pytest.fixture
    def sender(self, store: Store, clock: ManualClock) -> Sender:
        return Sender(store, clock)

    async def test_a_send_is_due_at_once_and_its_fire_has_the_id_that_was_returned(
        self, sender: Sender, worker: Worker, schedules: Schedules
    ) -> None:
        sent = await sender.send(payload={"n": 1})
        assert sent == Sent("u1", "welcome", fire_id("u1", "welcome", NOW_MS), NOW_MS, is_new=True)
        assert await sender.traces() == ALL
        (claim,) = await worker.claim(NOW_MS)
        assert claim.fire is not None
        assert (claim.fire.id, claim.nominal_at, claim.schedule.payload) == (sent.fire_id, NOW_MS, {"n": 1})
        await worker.settle(NOW_MS, done(claim.fire, NOW_MS, delete_schedule=True))
        assert await schedules.get("u1", "welcome") is None
        assert await sender.traces() == REMEMBERED, "only the record is left"

    async def test_the_same_send_again_returns_the_first_and_writes_nothing(
        self, sender: Sender, worker: Worker, clock: ManualClock, schedules: Schedules
    ) -> None:
        first = await sender.send(payload={"a": 1, "b": 2})
        clock.advance(60)
        again = await sender.send(payload={"b": 2, "a": 1})
        assert again == replace(first, is_new=False)
        assert (await stored(schedules, "welcome")).version == 1
        (fire,) = fires_of(await worker.claim(clock.now_ms()))
        await worker.settle(clock.now_ms(), done(fire, clock.now_ms(), delete_schedule=True))
        assert await sender.send(payload={"a": 1, "b": 2}) == again
        assert await worker.claim(clock.now_ms()) == []

    async def test_other_content_under_the_same_key_is_refused(self, sender: Sender, schedules: Schedules) -> None:
        first = await sender.send(payload=1)
        for call in (
            sender.send(payload=2),
            sender.send(payload=1, at=NOW_MS),
            sender.send(payload=1, policy=Policy(attempts=2)),
        ):
            with pytest.raises(SendConflict, match=r"u1/welcome was sent with other content .* use another key") as conflict:
                await call
            assert (conflict.value.owner, conflict.value.key, conflict.value.fire_id) == ("u1", "welcome", first.fire_id)
        assert (await stored(schedules, "welcome")).payload == 1
        assert (await sender.send("other", 2)).is_new

    async def test_a_schedule_of_the_same_key_refuses_a_send(self, sender: Sender, schedules: Schedules) -> None:
        before = await schedules.put(schedule())
        with pytest.raises(SendConflict, match="u1/digest is a schedule") as conflict:
            await sender.send("digest")
        assert conflict.value.fire_id is None
        assert await schedules.get("u1", "digest") == before
        await schedules.delete("u1", "digest")
        assert (await sender.send("digest")).is_new

    async def test_of_concurrent_sends_one_is_new_and_all_name_its_fire(self, sender: Sender, worker: Worker) -> None:
        sent = await asyncio.gather(*(sender.send(key, 1) for key in "abcde" for _ in range(6)))
        for key in "abcde":
            assert sum(each.is_new for each in sent if each.key == key) == 1
        fires = {each.fire_id for each in sent}
        assert len(fires) == 5
        assert {fire.id for fire in fires_of(await worker.claim(NOW_MS))} == fires

    async def test_of_concurrent_sends_with_other_content_one_wins(self, sender: Sender, schedules: Schedules) -> None:
        results = await asyncio.gather(*(sender.send(payload=n) for n in range(4)), return_exceptions=True)
        sent = [result for result in results if isinstance(result, Sent)]
        assert [each.is_new for each in sent] == [True]
        assert sum(isinstance(result, SendConflict) for result in results) == 3
        assert (await stored(schedules, "welcome")).payload == results.index(sent[0])

    async def test_a_send_is_remembered_as_long_as_the_history_may_have_an_attempt_of_it(
        self, sender: Sender, worker: Worker, clock: ManualClock
    ) -> None:
        first = await sender.send(payload=1, at=NOW_MS + HOUR_MS)
        assert first.nominal_at == NOW_MS + HOUR_MS
        assert await worker.claim(NOW_MS + HOUR_MS - 1) == []
        (fire,) = fires_of(await worker.claim(NOW_MS + HOUR_MS))
        await worker.settle(NOW_MS + HOUR_MS, done(fire, NOW_MS + HOUR_MS, delete_schedule=True))
        clock.set(NOW_MS + HOUR_MS + MAX_OPEN_MS + HISTORY_RETENTION_MS - 1)
        assert await sender.send(payload=1, at=NOW_MS + HOUR_MS) == replace(first, is_new=False)
        clock.set(NOW_MS + HOUR_MS + MAX_OPEN_MS + HISTORY_RETENTION_MS)
        again = await sender.send(payload=2)
        assert again == Sent("u1", "welcome", fire_id("u1", "welcome", clock.now_ms()), clock.now_ms(), is_new=True)
        assert await sender.traces() == ALL

    async def test_an_instant_in_the_past_is_now(self, sender: Sender, worker: Worker, clock: ManualClock) -> None:
        sent = await sender.send(at=NOW_MS - HOUR_MS)
        assert sent.nominal_at == NOW_MS
        clock.advance(1)
        assert (await sender.send(at=NOW_MS - HOUR_MS)).fire_id == sent.fire_id, "the instant that was named is the same"
        (claim,) = await worker.claim(clock.now_ms())
        assert claim.nominal_at == NOW_MS

    async def test_a_send_that_is_dead_stays_and_can_still_be_asked_for(
        self, sender: Sender, worker: Worker, clock: ManualClock
    ) -> None:
        sent = await sender.send()
        (fire,) = fires_of(await worker.claim(NOW_MS))
        await worker.settle(NOW_MS, dead(fire, NOW_MS))
        assert await sender.send() == replace(sent, is_new=False)
        clock.advance(timedelta(days=61))
        with pytest.raises(SendConflict, match="is a schedule"):
            await sender.send()

    async def test_a_send_that_was_deleted_before_it_went_is_not_sent_again(
        self, sender: Sender, schedules: Schedules, worker: Worker
    ) -> None:
        sent = await sender.send()
        assert await schedules.delete("u1", "welcome")
        assert await sender.send() == replace(sent, is_new=False)
        assert await worker.claim(NOW_MS) == []

    async def test_a_put_replaces_a_send_that_has_not_gone_as_it_replaces_any_schedule(
        self, sender: Sender, schedules: Schedules, worker: Worker
    ) -> None:
        await sender.send("digest", payload=1)
        await schedules.put(schedule(payload=2))
        assert await worker.claim(NOW_MS) == []
        assert (await sender.send("digest", payload=1)).is_new is False
        with pytest.raises(SendConflict, match="other content"):
            await sender.send("digest", payload=2)
        assert (await stored(schedules)).payload == 2

    async def test_a_large_payload_is_sent_whole(self, sender: Sender, worker: Worker) -> None:
        payload = {"text": "x" * 100_000}
        sent = await sender.send(payload=payload)
        (claim,) = await worker.claim(NOW_MS)
        assert claim.schedule.payload == payload
        assert claim.fire is not None
        assert claim.fire.id == sent.fire_id

    async def test_sends_of_a_transaction_go_when_it_commits(self, sender: Sender, worker: Worker, begin: Begin) -> None:
        async with begin() as transaction:
            first = await sender.send("a", 1, using=transaction)
            await sender.send("b", {"text": "x" * 10_000}, using=transaction)
            assert (first.is_new, first.fire_id) == (True, fire_id("u1", "a", NOW_MS))
            assert await sender.traces("a") == await sender.traces("b") == NOTHING
        assert await sender.traces("a") == await sender.traces("b") == ALL
        assert first.fire_id in [fire.id for fire in fires_of(await worker.claim(NOW_MS))]
        async with begin() as transaction:
            assert await sender.send("a", 1, using=transaction) == replace(first, is_new=False)
            with pytest.raises(SendConflict):
                await sender.send("b", 2, using=transaction)

    async def test_sends_of_a_transaction_that_is_rolled_back_leave_no_trace(self, sender: Sender, begin: Begin) -> None:
        async def attempt() -> None:
            async with begin() as transaction:
                await sender.send(using=transaction)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await attempt()
        assert await sender.traces() == NOTHING
        assert (await sender.send(payload="other")).is_new

    async def test_a_unit_of_work_conflicts_if_others_sent_the_same_meanwhile(
        self, sender: Sender, schedules: Schedules, unit: Begin
    ) -> None:
        async def attempt() -> None:
            async with unit() as transaction:
                await schedules.put(schedule(), using=transaction)
                assert (await sender.send(payload=1, using=transaction)).is_new
                assert (await sender.send(payload=1)).is_new

        with pytest.raises(TransactionConflict, match="u1/welcome"):
            await attempt()
        assert await schedules.get("u1", "digest") is None
        assert await sender.traces() == ALL

    async def test_a_send_is_in_a_unit_of_work_once(self, sender: Sender, schedules: Schedules, unit: Begin) -> None:
        async with unit() as transaction:
            await sender.send(using=transaction)
            for call in (sender.send(using=transaction), schedules.put(schedule("welcome"), using=transaction)):
                with pytest.raises(InvalidInput, match="u1/welcome is in this transaction already"):
                    await call
        assert await sender.traces() == ALL

    async def test_a_transaction_of_the_caller_sees_its_own_sends(
        self, sender: Sender, schedules: Schedules, worker: Worker, own: Begin
    ) -> None:
        async with own() as transaction:
            first = await sender.send(payload=1, using=transaction)
            assert await sender.send(payload=1, using=transaction) == replace(first, is_new=False)
            await schedules.put(schedule(), using=transaction)
            with pytest.raises(SendConflict):
                await sender.send("digest", using=transaction)
            with pytest.raises(SendConflict):
                await sender.send(payload=2, using=transaction)
        assert [fire.id for fire in fires_of(await worker.claim(NOW_MS))] == [first.fire_id]
