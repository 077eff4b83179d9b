"""Settlements are written in batches, in order, and none is lost while the store is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tickler import Cron, Policy, Schedule, StoreUnavailable
from tickler.deliver.settlement_writer import LINGER_S, MAX_BATCH, MAX_PAUSE_S, SettlementWriter
from tickler.errors import InvalidInput
from tickler.model.fire import Claim, Entry, Settlement, uncounted_fire
from tickler.model.schedule import Id

from .at_work import Bench
from .virtual_time import START_MS, in_virtual_time

RETENTION_MS = 3_600_000


class Written:
    """A settlement writer on the store of a bench. Batches differ by their time."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.faults = self.bench.faults
        self.writer = SettlementWriter(self.bench.store.store().fires, self.bench.clock, RETENTION_MS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.writer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def put(self, *numbers: int) -> None:
        for number in numbers:
            self.writer.put(noted(number))

    @property
    def order(self) -> list[int]:
        """Return what was written, in order."""
        return [settlement.entry.nominal_at - START_MS for settlement in self.faults.settled if settlement.entry is not None]

    @property
    def batches(self) -> int:
        return self.faults.asked["fires.settle"]


def noted(number: int) -> Settlement:
    """Return the settlement of an at-most-once fire."""
    entry = Entry(owner="u1", key="digest", nominal_at=START_MS + number, at=START_MS + number, happened="delivered", attempt=1)
    return Settlement(Id("u1", "digest"), None, "done", entry)


def done(claim: Claim) -> Settlement:
    fire = claim.fire
    assert fire is not None
    entry = Entry(owner=fire.owner, key=fire.key, nominal_at=fire.nominal_at, at=START_MS, happened="delivered", fire_id=fire.id)
    return Settlement(claim.schedule.id, fire, "done", entry)


async def claimed(bench: Bench, number: int, lease_ms: int = 60_000) -> list[Claim]:
    """Return due fires, leased to one worker."""
    await bench.put(
        *(Schedule(owner="u1", key=f"k{n}", when=Cron("* * * * *"), target="https://h.example") for n in range(number))
    )
    await asyncio.sleep(60)
    return await bench.claimed_by_a_ghost(lease_ms)


# Many at a time.


@in_virtual_time
async def test_what_comes_within_a_moment_is_written_together_and_in_order() -> None:
    written = Written()
    async with written.running():
        written.put(1, 2)
        await asyncio.sleep(LINGER_S / 2)
        written.put(3)
        await written.writer.flush(10)
    assert (written.order, written.batches, written.writer.written) == ([1, 2, 3], 1, 3)
    assert len(written.writer) == 0


@in_virtual_time
async def test_more_than_a_batch_holds_is_written_in_several_without_a_pause_between_full_ones() -> None:
    written = Written()
    number = 2 * MAX_BATCH + 7
    written.put(*range(number))
    began = written.bench.clock.now_ms()
    async with written.running():
        await written.writer.flush(10)
    assert (written.order, written.batches) == (list(range(number)), 3)
    assert written.bench.clock.now_ms() - began == round(LINGER_S * 1000), "it lingered for the last alone, which was not full"


@in_virtual_time
async def test_what_comes_while_a_batch_is_written_goes_with_the_next() -> None:
    written = Written()
    written.faults.held["fires.settle"] = asyncio.Event()
    async with written.running():
        written.put(1)
        await written.faults.until_asked("fires.settle")
        written.put(2, 3)
        assert len(written.writer) == 3, "what is not known to be written is not counted as such"
        written.faults.held.pop("fires.settle").set()
        await written.writer.flush(10)
    assert (written.order, written.batches) == ([1, 2, 3], 2)


@in_virtual_time
async def test_nothing_is_asked_of_the_store_while_there_is_nothing_to_write() -> None:
    written = Written()
    async with written.running():
        await asyncio.sleep(3_600)
        written.put(1)
        await written.writer.flush(1)
        await asyncio.sleep(3_600)
    assert written.batches == 1


@in_virtual_time
async def test_entries_are_kept_for_as_long_as_was_said_from_when_they_are_written() -> None:
    written = Written()
    async with written.running():
        await asyncio.sleep(30)
        written.put(1)
        await written.writer.flush(1)
    (kept,) = written.bench.store.real.records._tables.history
    assert kept.expires_at == START_MS + 30_000 + round(LINGER_S * 1000) + RETENTION_MS


# While the store is away.


@pytest.mark.parametrize("error", [StoreUnavailable("away"), InvalidInput("no")], ids=lambda error: type(error).__name__)
@in_virtual_time
async def test_while_the_store_is_away_outcomes_wait_in_order_and_are_all_written_when_it_is_back(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    written = Written()
    written.faults.failing["fires.settle"] = error
    async with written.running():
        for number in range(20):
            written.put(number)
            await asyncio.sleep(1)
        assert (written.order, len(written.writer), written.writer.written) == ([], 20, 0)
        written.faults.back()
        await written.writer.flush(MAX_PAUSE_S + 1)
        assert written.order == list(range(20))
        written.put(20)
        await written.writer.flush(1)  # at once: what failed before is forgotten
    assert written.order == list(range(21))
    assert written.writer.written == 21
    assert f"settlements wait to be written: {error}" in caplog.text


@in_virtual_time
async def test_a_store_that_is_away_for_long_is_asked_less_and_less_often_and_again_soon_after_it_was_back() -> None:
    written = Written()
    written.faults.away("fires.settle")
    async with written.running():
        written.put(1)
        await asyncio.sleep(1)
        assert 3 <= written.batches <= 5
        before = written.batches
        await asyncio.sleep(600)
        assert 600 / (MAX_PAUSE_S + LINGER_S) - 5 <= written.batches - before <= 600 / MAX_PAUSE_S + 5
        written.faults.back()
        await written.writer.flush(MAX_PAUSE_S + 1)
        written.faults.failing_once["fires.settle"] = [StoreUnavailable("for a moment")]
        written.put(2)
        await written.writer.flush(0.5)
    assert written.order == [1, 2]


@in_virtual_time
async def test_a_batch_that_fails_between_others_holds_up_what_comes_after_it_and_loses_nothing() -> None:
    written = Written()
    written.faults.failing_once["fires.settle"] = [None, StoreUnavailable("a moment"), StoreUnavailable("another"), None]
    number = 3 * MAX_BATCH
    written.put(*range(number))
    async with written.running():
        await written.writer.flush(10)
    assert written.order == list(range(number))
    assert written.batches == 5


# Waiting for it.


@in_virtual_time
async def test_who_waits_until_all_is_written_waits_no_longer_than_that() -> None:
    written = Written()
    written.faults.away("fires.settle")
    async with written.running():
        written.put(1)
        before = written.bench.clock.now_ms()
        await written.writer.flush(7.5)
        assert written.bench.clock.now_ms() - before == 7_500
        await written.writer.flush(0)
        await written.writer.flush(-3)
        assert written.bench.clock.now_ms() - before == 7_500
    assert written.order == []


@in_virtual_time
async def test_nobody_waits_where_nothing_is_to_be_written() -> None:
    """Not even without a running writer."""
    written = Written()
    before = written.bench.clock.now_ms()
    await written.writer.flush(60)
    assert written.bench.clock.now_ms() == before


@in_virtual_time
async def test_what_is_put_while_somebody_waits_is_waited_for_too() -> None:
    written = Written()
    written.faults.held["fires.settle"] = asyncio.Event()
    async with written.running():
        written.put(1)
        waiting = asyncio.create_task(written.writer.flush(60))
        await written.faults.until_asked("fires.settle")
        written.put(2)
        written.faults.held.pop("fires.settle").set()
        await waiting
        assert written.order == [1, 2]


# Leases that were lost.


@in_virtual_time
async def test_those_whose_lease_had_gone_to_another_are_counted_and_the_others_are_settled() -> None:
    written = Written()
    claims = await claimed(written.bench, 3, lease_ms=1_000)
    await asyncio.sleep(2)
    taken = await written.bench.tickler.fires.lease(written.bench.clock.now_ms(), 1, worker="another")
    async with written.running():
        for claim in claims:
            written.writer.put(done(claim))
        await written.writer.flush(5)
    assert (written.writer.lost, written.writer.written) == (1, 3)
    assert [fire.id for fire in await written.bench.fires()] == [each.fire.id for each in taken if each.fire is not None]


@in_virtual_time
async def test_an_answer_that_was_lost_makes_it_written_again_and_changes_no_fire_twice() -> None:
    """It counts as a lost lease then: the store had written it, and its answer was lost."""
    written = Written()
    (claim,) = await claimed(written.bench, 1)
    written.faults.losing_answers.add("fires.settle")
    async with written.running():
        written.writer.put(done(claim))
        await written.faults.until_asked("fires.settle", 2)
        assert len(written.writer) == 1
        written.faults.losing_answers.clear()
        await written.writer.flush(5)
    assert (await written.bench.fires(), written.writer.lost, written.writer.written) == ([], 1, 1)
    assert set(await written.bench.happened("k0")) == {"delivered"}


@in_virtual_time
@pytest.mark.parametrize("postponed", [False, True], ids=["released", "postponed"])
async def test_a_fire_that_was_opened_while_the_writer_was_cancelled_is_not_opened_again(postponed: bool) -> None:
    """Another worker has delivered it by then, and it is delivered at most once."""
    written = Written()
    fires, clock = written.bench.store.real.fires, written.bench.clock
    await written.bench.put(
        Schedule(owner="u1", key="k0", when="* * * * *", target="https://h.example", policy=Policy(delivery="at-most-once"))
    )
    await asyncio.sleep(60)
    (claim,) = await written.bench.claimed_by_a_ghost(60_000)
    fire = uncounted_fire(claim, clock.now_ms(), clock.now_ms())
    entry = Entry(owner="u1", key="k0", nominal_at=fire.nominal_at, at=clock.now_ms(), happened="postponed", fire_id=fire.id)
    written.faults.held["fires.open"] = asyncio.Event()
    async with written.running():
        written.writer.open(fire, entry if postponed else None)
        await written.faults.until_asked("fires.open")
    del written.faults.held["fires.open"]
    (again,) = await written.bench.tickler.fires.lease(clock.now_ms(), 1, worker="another")
    await fires.settle([done(again)], clock.now_ms(), expires_at=clock.now_ms() + RETENTION_MS)
    await written.writer.flush(5)
    assert (len(written.writer), await written.bench.fires()) == (0, [])
    assert sorted(await written.bench.happened("k0")) == ["delivered", *(["postponed"] if postponed else [])]
