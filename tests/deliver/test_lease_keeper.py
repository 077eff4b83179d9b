"""Leases of a worker whose event loop cannot extend them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

import pytest
from msgspec.structs import force_setattr

from tickler import At, Delivery, ManualClock, PythonTarget, RunOptions, Schedule, connect
from tickler.clock import to_datetime
from tickler.deliver.lease_keeper import KeeperTiming, LeaseKeeper
from tickler.errors import StoreUnavailable
from tickler.model.fire import Extension, Fire
from tickler.stores.store import Store

TIMEOUT_S = 30.0
LEASE_MS = 2_000
NOW_MS = 1_921_406_400_000
FIRE = Fire(id="f", owner="u1", key="k", nominal_at=NOW_MS, opened_at=NOW_MS, attempt=1, deliver_after=NOW_MS, worker="w")


def wait_here(what: str, is_so: Callable[[], bool]) -> None:
    """Block the event loop, as a handler that computes does."""
    ends_at = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < ends_at, f"not so within {TIMEOUT_S:g} s: {what}"
        time.sleep(0.01)


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tickler lease keeper"]


def short_lease() -> RunOptions:
    """Shorter than an operator may make it, to save the time."""
    options = RunOptions(drain=5)
    force_setattr(options, "lease", timedelta(milliseconds=LEASE_MS))
    return options


async def another_worker(url: str, looks: list[float], ends: threading.Event) -> None:
    """Take over expired leases again and again, as another process would."""
    async with connect(url) as tickler:
        while not ends.is_set():
            taken = await tickler.fires.lease(tickler.now_ms(), worker="another")
            assert not taken, taken
            looks.append(tickler.now_ms())
            await asyncio.sleep(0.05)


@contextmanager
def beside(url: str) -> Iterator[list[float]]:
    looks: list[float] = []
    ends = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(another_worker(url, looks, ends))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield looks
    finally:
        ends.set()
        thread.join(TIMEOUT_S)
    assert not failed, failed


async def test_a_handler_that_blocks_the_event_loop_for_longer_than_a_lease_keeps_its_fires(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[str] = []
    delivered = asyncio.Event()
    async with connect(sqlite_url) as tickler:
        due_at = tickler.now_ms() + 200
        with beside(sqlite_url) as looks:

            @tickler.handler("computes")
            async def compute(delivery: Delivery) -> None:
                begun.append(delivery.id)
                until_ms = tickler.now_ms() + LEASE_MS + 500
                wait_here("another has looked after the lease would have ended", lambda: bool(looks) and looks[-1] > until_ms)
                delivered.set()

            await tickler.schedules.put(
                Schedule(owner="u1", key="slow", when=At(to_datetime(due_at)), target=PythonTarget("computes"))
            )
            running = asyncio.create_task(tickler.run(short_lease()))
            async with asyncio.timeout(TIMEOUT_S):
                await delivered.wait()
            tickler.stop()
            await running
        assert [entry.happened for entry in (await tickler.fires.history("u1", "slow")).items] == ["delivered"]
    assert len(begun) == 1
    assert "a thread extends the leases" in caplog.text
    assert keepers() == [], "the thread ends with its worker"


class Stub:
    """A store that only extends, and says how often."""

    def __init__(self, *errors: Exception) -> None:
        self.fires = self
        self.errors = list(errors)
        self.opened = self.closed = 0
        self.extended: list[int] = []

    async def open(self, *, create: bool) -> None:
        self.opened += 1
        if self.errors:
            raise self.errors.pop()

    async def close(self) -> None:
        self.closed += 1

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        self.extended.append(until_ms)
        return Extension([])


def keeper_of(
    store: Stub, held: Callable[[], Sequence[Fire]], *, lease_ms: int = 100, max_silence_s: float = TIMEOUT_S
) -> LeaseKeeper:
    timing = KeeperTiming(lease_ms, 0, max_silence_s)
    return LeaseKeeper(lambda: cast(Store, store), ManualClock(NOW_MS), held, timing)


async def test_nothing_is_opened_while_the_loop_extends_its_leases_itself() -> None:
    store = Stub()
    keeper = keeper_of(store, lambda: [FIRE], lease_ms=60_000)
    keeper.start()
    await keeper.stop()
    assert (store.opened, keepers()) == (0, [])


async def test_nothing_is_opened_while_nothing_is_held() -> None:
    store, asked = Stub(), threading.Semaphore(0)

    def nothing() -> list[Fire]:
        asked.release()
        return []

    keeper = keeper_of(store, nothing)
    keeper.start()
    assert asked.acquire(timeout=TIMEOUT_S)
    await keeper.stop()
    assert store.opened == 0


async def test_a_store_that_does_not_answer_at_first_is_asked_again() -> None:
    store = Stub(StoreUnavailable("the store is away"))
    keeper = keeper_of(store, lambda: [FIRE])
    keeper.start()
    wait_here("it is extended", lambda: bool(store.extended))
    await keeper.stop()
    assert store.opened == 2
    assert store.closed == 1, "what was opened is closed when the worker ends"


async def test_whatever_a_store_raises_is_said_once_and_it_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    store = Stub(ValueError("a driver's own"), TypeError("another"), RuntimeError("of the loop's"))
    keeper = keeper_of(store, lambda: [FIRE])
    keeper.start()
    wait_here("it is extended", lambda: bool(store.extended) or not keepers())
    await keeper.stop()
    assert (store.opened, len(store.extended) > 0) == (4, True)
    said = [record.message for record in caplog.records if "could not extend leases" in record.message]
    assert said == ["the lease keeper could not extend leases, and tries again: of the loop's"]


def test_a_loop_is_dead_after_five_minutes_or_a_lease_however_long_attempts_may_last() -> None:
    assert KeeperTiming(10_000, 0).dead_after_s == 300
    assert KeeperTiming(86_400_000, 0).dead_after_s == 86_400, "one that extends its leases in time is alive"


async def test_what_changes_while_it_is_read_is_read_again() -> None:
    store, reads = Stub(), iter([RuntimeError("changed size"), RuntimeError("changed size")])

    def held() -> list[Fire]:
        if error := next(reads, None):
            raise error
        return [FIRE]

    keeper = keeper_of(store, held)
    keeper.start()
    wait_here("it is extended", lambda: bool(store.extended))
    await keeper.stop()
    assert next(reads, None) is None, "it was read again after each change"


async def test_leases_of_a_loop_that_is_dead_are_left_to_end(caplog: pytest.LogCaptureFixture) -> None:
    store = Stub()
    with caplog.at_level(logging.ERROR, "tickler.deliver"):
        keeper = keeper_of(store, lambda: [FIRE], max_silence_s=0.3)
        keeper.start()
        wait_here("it says so", lambda: "fires are left to other workers" in caplog.text)
    extended = len(store.extended)
    assert store.closed == store.opened
    await keeper.stop()
    assert len(store.extended) == extended
