"""pricebook: what it takes to stage and seal a change set, and what readers notice while 1,000 stores change in one minute.

The server, the worker that settles, and the readers are three processes on one table of 4,000,000 prices.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from http_load import Latencies, http_load
from measure import PAIRS, Result, shared_folder
from pricebook.access.caller import ROLES, Caller
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.change_sets import Line, NewChangeSet
from pricebook.editions.staging import Staged
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import PriceKey, UnsettledEdition
from pricebook.money import Money
from pricebook.settling.jobs import change_key, owner_of
from pricebook_readers import issue_tokens, mixed
from pricebook_store import Took, remove, size, sqlite_path, sqlite_url, timed
from server_process import server_process
from tickler import RetryLater

RATE = 50
SPIKE_MS = 2.3  # of a store with 500 products, by SQL of the spike's own
TRIAL_STORES = 5
TRIES = 3
CHANGED_MINOR = 1_234
START_S = 12  # of the two processes
SETTLE_TIMEOUT_S = 300
POLL_S = 0.25
SOMEBODY = Caller("bench", frozenset(ROLES))


class Change(NamedTuple):
    """A change set of some stores, and the instant from which it counts."""

    id: str
    at: datetime
    stores: Sequence[str]


async def run(say: Callable[[str], None]) -> list[Result]:
    chosen = size()
    say(f"a change set of {chosen.staged} products in a store")
    results = await _staging()
    async with open_pricebook(Settings(store=await sqlite_url(chosen.stores), four_eyes=False)) as book:
        results.append(await _one_store(book))
        return [*results, *await _many_stores(book, say)]


async def _staging() -> list[Result]:
    """Stage and seal, beside raw reads and writes of the same rows. Both are on a copy of the small table."""
    await sqlite_url(size().few)
    path = shared_folder() / "pricebook-staging.db"
    shutil.copyfile(sqlite_path(size().few), path)
    ours: list[float] = []
    try:
        async with open_pricebook(Settings(store=f"sqlite:///{path}")) as book:
            for number in range(PAIRS):
                ours.append((await timed(lambda: _stage(book, _catalogue().store(number)))).processor_s)  # noqa: B023
        theirs = [_write_by_hand(str(path), _catalogue().store(PAIRS + number)) for number in range(PAIRS)]
    finally:
        remove(path)
    mine, raw = statistics.median(ours) * 1_000, statistics.median(theirs) * 1_000
    name = f"pricebook: staging and sealing {size().staged} products of a store"
    return [
        Result(name, f"{mine:.1f} ms", f"{raw:.1f} ms", "sqlite3: the same rows read and written, processor time", raw / mine, 0),
        Result(name, f"{mine:.1f} ms", f"{SPIKE_MS} ms", "the spike's own SQL, without change log", SPIKE_MS / mine, 0),
    ]


async def _stage(book: Pricebook, store: str) -> None:
    number = await book.switch.open_edition(store, book.now() + timedelta(days=2))
    products = (_catalogue().product(n) for n in range(size().staged))
    await book.switch.stage(store, number, [Staged("ALL", "Base", product, Money(777, "EUR")) for product in products])
    await book.switch.seal(store, number)


def _write_by_hand(path: str, store: str) -> float:
    """Return the processor seconds of reading the rows of a store, and writing them with one value more."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA synchronous = FULL")
    began = time.process_time()
    raw.execute("BEGIN IMMEDIATE")
    for n in range(size().staged):
        key = (f"STORE#{store}", f"ALL#Base#{_catalogue().product(n)}#")
        (body,) = raw.execute("SELECT body FROM pricebook WHERE pk = ? AND sk = ?", key).fetchone()
        later = b',"2027-01-01T00:00:00Z":{"amount":777,"currency":"EUR","edition":1}}}'
        raw.execute("UPDATE pricebook SET body = ? WHERE pk = ? AND sk = ?", (body.removesuffix(b"}}") + later, *key))
    raw.execute("COMMIT")
    seconds = time.process_time() - began
    raw.close()
    return seconds


async def _one_store(book: Pricebook) -> Result:
    """Measure the whole way: drafted, submitted, reported, approved, staged and sealed."""
    stores = [_catalogue().store(size().stores - 1 - n) for n in range(PAIRS)]
    took = [await timed(lambda: _approved(book, [store], size().staged, timedelta(days=3))) for store in stores]  # noqa: B023
    seconds = statistics.median(each.processor_s for each in took)
    return Result(
        f"pricebook: a change set of {size().staged} products, from draft to approved",
        f"{seconds * 1_000:,.0f} ms",
        f"{statistics.median(each.wall_s for each in took) * 1_000:,.0f} ms",
        f"wall time; {size().staged / seconds:,.0f} prices a second of processor time",
        1.0,
        0,
    )


async def _many_stores(book: Pricebook, say: Callable[[str], None]) -> list[Result]:
    chosen = size()
    stores = [_catalogue().store(n * chosen.stores // chosen.switched) for n in range(chosen.switched)]
    change, staged = await _prepared(book, stores, say)
    prices = chosen.switched * chosen.switched_products
    tokens = await issue_tokens(book)
    async with (
        server_process("pricebook_server.py", "serve", book.settings.store) as server,
        server_process("pricebook_server.py", "work", book.settings.store) as worker,
        http_load(server.port) as load,
    ):
        await _until_scheduled(book, change)
        left = (change.at - _now()).total_seconds() - 2
        if left < min(chosen.measured_s, 1):
            raise RuntimeError(f"staging took too long: only {left:.0f} s are left before the stores change")
        say(f"readers, {RATE} times a second, before {chosen.switched:,} stores change")
        await load.at_rate(mixed(chosen.stores, tokens), RATE, min(2, left / 3))
        before = await load.at_rate(mixed(chosen.stores, tokens), RATE, min(_before_s(), left * 2 / 3))
        await asyncio.sleep(max((change.at - _now()).total_seconds(), 0))
        say("readers meanwhile")
        worked = await worker.processor_s()
        seconds, meanwhile = await _while_settling(book, change, load.at_rate, mixed(chosen.stores, tokens))
        worked = await worker.processor_s() - worked
    await _check(book, change)
    return [
        Result(
            f"pricebook: change of {chosen.switched:,} stores, from draft to approved",
            f"{prices / staged.processor_s:,.0f}/s",
            f"{prices / staged.wall_s:,.0f}/s",
            f"prices by wall time, {prices:,} of them",
            1.0,
            0,
        ),
        Result(
            f"pricebook: settling {chosen.switched:,} stores that change at once",
            f"{chosen.switched / seconds:,.0f}/s",
            f"{chosen.switched / worked:,.0f}/s",
            f"stores by processor time, {prices / worked:,.0f} prices/s",
            1.0,
            0,
        ),
        Result(
            "pricebook: p95 of readers while the stores are settled",
            f"{meanwhile.percentile(95):.2f} ms",
            f"{before.percentile(95):.2f} ms",
            f"before; {len(meanwhile.ms):,} queries, {meanwhile.timeouts} timeouts",
            meanwhile.percentile(95) / before.percentile(95),
            2.0,
            at_most=True,
        ),
    ]


async def _prepared(book: Pricebook, stores: Sequence[str], say: Callable[[str], None]) -> tuple[Change, Took]:
    """Approve the change of all stores, for an instant by which all is ready: as a trial with a few of them tells."""
    products = size().switched_products
    trial = await timed(lambda: _approved(book, stores[:TRIAL_STORES], products, timedelta(days=4)))
    staged_s = 1.5 * trial.wall_s * len(stores) / min(TRIAL_STORES, len(stores))
    for _ in range(TRIES):
        ready_s = START_S + staged_s + _before_s() + size().buffer_s
        say(f"a change set of {len(stores):,} stores with {products} products each, which counts in {ready_s:.0f} s")
        change: list[Change] = []

        async def approve() -> None:
            change.append(await _approved(book, stores, products, timedelta(seconds=ready_s)))  # noqa: B023  # awaited here

        took = await timed(approve)
        say(f"staged in {took.wall_s:.0f} s")
        if took.wall_s <= staged_s:
            return change[0], took
        staged_s = 3 * took.wall_s
    raise RuntimeError("others keep this machine busy: staging takes longer each time")


async def _approved(book: Pricebook, stores: Sequence[str], products: int, later: timedelta) -> Change:
    """Approve a change set, and carry it out here rather than in a worker."""
    sets, at = book.change_sets, _now() + later
    draft = await sets.create(SOMEBODY, NewChangeSet(title="bench", at=at))
    await sets.put_lines(SOMEBODY, draft.id, _lines(stores, products))
    submitted = await sets.submit(SOMEBODY, draft.id)
    await sets.approve(SOMEBODY, draft.id, rev=submitted.rev, reason="bench")
    while (await sets.get(SOMEBODY, draft.id)).state == "approving":
        with suppress(RetryLater):
            await sets.carry_on(draft.id)
    found = await sets.get(SOMEBODY, draft.id)
    assert found.state == "approved", found
    return Change(draft.id, at, stores)


def _lines(stores: Sequence[str], products: int) -> Iterator[Line]:
    for store in stores:
        for n in range(products):
            yield Line(PriceKey(store, "ALL", "Base", _catalogue().product(n)), Money(CHANGED_MINOR, "EUR"))


async def _until_scheduled(book: Pricebook, change: Change) -> None:
    """Wait until the worker has followed the changes of all heads."""
    key = change_key(change.at)
    for store in change.stores:
        while await book.t.schedules.get(owner_of(store), key) is None:
            if _now() > change.at:
                raise RuntimeError("the worker has not followed the changes of heads in time")
            await asyncio.sleep(POLL_S)


async def _while_settling(
    book: Pricebook,
    change: Change,
    at_rate: Callable[..., Coroutine[None, None, Latencies]],
    requests: Iterator[bytes],
) -> tuple[float, Latencies]:
    """Return the seconds until all stores are settled, and the latencies of readers meanwhile."""
    settled = asyncio.Event()
    asked = asyncio.create_task(at_rate(requests, RATE, SETTLE_TIMEOUT_S, settled))
    while await book.db.count(UnsettledEdition.by_instant().until(change.at)):
        if asked.done():
            raise RuntimeError(f"not all stores are settled after {SETTLE_TIMEOUT_S} s")
        await asyncio.sleep(POLL_S)
    seconds = (_now() - change.at).total_seconds()
    settled.set()
    return seconds, await asked


async def _check(book: Pricebook, change: Change) -> None:
    """Every price counts, and is settled; the change set learns of it a moment later."""
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while (await book.change_sets.get(SOMEBODY, change.id)).state != "settled":
            await asyncio.sleep(POLL_S)
    for store in change.stores[:: max(len(change.stores) // 20, 1)]:
        price = await book.prices.as_of(store, _catalogue().product(0), change.at)
        assert price is not None
        assert price.amount.minor == CHANGED_MINOR


def _before_s() -> float:
    """Return how long readers are measured before the change."""
    return size().measured_s / 2


def _catalogue() -> MadeCatalogue:
    return MadeCatalogue(size().stores, size().products)


def _now() -> datetime:
    return datetime.now(UTC)
