"""Writes the prices of an open edition to their rows, in batches. Nobody sees them before the edition is sealed and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from pricebook.editions.head_writes import Cause, HeadWrites, Plan
from pricebook.editions.slots import edition_to_stage, how_to_stage, open_edition
from pricebook.editions.storage import Storage
from pricebook.editions.timing import Now, Timing, whole_milliseconds
from pricebook.errors import InvalidField, NotAllowed
from pricebook.model import Head, PriceKey, PriceRow, Value
from pricebook.money import Money
from tickler.errors import ConditionFailed
from tickler.table import MISSING, evolve

T = TypeVar("T")

STAGED_AT_A_TIME = 200  # rows in one transaction
AT_ONCE = 16  # rows where each is written by itself
MAX_UNTILS = 100  # different instants at which prices of an edition end: the head has them
TRIES = 5


class Staged(Struct, frozen=True):
    """A price of an edition. Without an amount, the product has no price from then on. After `until` the former price counts."""

    channel: str
    type: str
    product: str
    amount: Money | None
    until: datetime | None = None
    combination: str | None = None
    lowest_30_days: Money | None = None

    def key(self, store: str) -> PriceKey:
        return PriceKey(store, self.channel, self.type, self.product, self.combination)

    def value(self, edition: int) -> Value:
        amount, lowest = self.amount, self.lowest_30_days
        if amount is not None and amount.minor < 0:
            raise InvalidField("amount", f"is {amount}: a price is not negative")
        if lowest is not None and (amount is None or lowest.currency != amount.currency):
            raise InvalidField("lowest_30_days", f"is {lowest}: it goes with an amount of the same currency")
        return Value(
            amount=MISSING if amount is None else amount.minor,
            currency=MISSING if amount is None else amount.currency,
            edition=edition,
            until=MISSING if self.until is None else whole_milliseconds(self.until),
            lowest=MISSING if lowest is None else lowest.minor,
        )


class Staging:
    def __init__(self, storage: Storage, writes: HeadWrites, now: Now, timing: Timing) -> None:
        self._now = now
        self._timing = timing
        self._storage = storage
        self._db = storage.db
        self._writes = writes

    async def stage(self, store: str, number: int, prices: Iterable[Staged]) -> int:
        return await self.stage_values(store, number, ((each.key(store), each.value(number)) for each in prices))

    async def stage_values(self, store: str, number: int, values: Iterable[tuple[PriceKey, Value]]) -> int:
        """Stage values batch by batch, so that any number of them takes little memory. Returns how many were new."""
        staged = 0
        for batch in batches(values, STAGED_AT_A_TIME):
            head = await self._prepare(store, number, batch)
            if await self._storage.has_snapshots():
                staged += await self._stage_together(head, number, batch)
            else:
                staged += await self._stage_each(head, number, batch)
        return staged

    async def _prepare(self, store: str, number: int, batch: Sequence[tuple[PriceKey, Value]]) -> Head:
        """Check that the edition is open, and let its head know the channels of a batch, and when prices of it end."""
        head = await self._writes.head(store)
        edition = edition_to_stage(head, number, self._now() - self._timing.retention)
        channels = {key.channel for key, _ in batch} - head.channels
        untils = {value.until for _, value in batch if isinstance(value.until, datetime)} - set(edition.untils)
        if not channels and not untils:
            return head

        def decide(head: Head) -> Plan:
            edition = open_edition(head, number)
            after = evolve(edition, untils=sorted({*edition.untils, *untils}))
            if len(after.untils) > MAX_UNTILS:
                raise InvalidField("until", f"has {len(after.untils)} different instants in one edition: use several editions")
            new = channels - head.channels
            return Plan(number, edition, after, (Head.channels.add(*new),) if new else ())

        await self._writes.write(store, "stage", decide, Cause())
        return await self._writes.head(store)

    async def _stage_together(self, head: Head, number: int, batch: Sequence[tuple[PriceKey, Value]]) -> int:
        """Stage a batch in one transaction, which fails if the edition is no longer open."""
        wanted = _each_once(batch)
        slot = open_edition(head, number).slot
        found: Mapping[PriceKey, Value | None] = dict.fromkeys(wanted)
        for _ in range(TRIES):
            edition = open_edition(head, number)
            writes = [each for key in sorted(wanted) if (each := how_to_stage(key, wanted[key], found[key], head)) is not None]
            try:
                async with self._db.transaction() as tx:
                    for write in writes:
                        tx.upsert(write.key.row, write.change, when=write.when)
                    if writes:
                        tx.check(head.key, Head.editions[number] == edition)
            except ConditionFailed:
                head = await self._writes.head(head.store)
                found = await self._found(list(wanted), slot)
            else:
                return len(writes)
        raise NotAllowed(f"store {head.store}: others stage the same prices all the time: try again")

    async def _stage_each(self, head: Head, number: int, batch: Sequence[tuple[PriceKey, Value]]) -> int:
        wanted = _each_once(batch)
        staged = 0
        for some in batches(wanted.items(), AT_ONCE):
            outcomes = await asyncio.gather(
                *(self._stage_one(head, number, key, value) for key, value in some), return_exceptions=True
            )
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
                staged += outcome
        return staged

    async def _stage_one(self, head: Head, number: int, key: PriceKey, value: Value) -> int:
        found: Value | None = None
        for _ in range(TRIES):
            write = how_to_stage(key, value, found, head)
            if write is None:
                return 0
            try:
                await self._db.upsert(key.row, write.change, when=write.when)
            except ConditionFailed:
                head = await self._writes.head(head.store)
                found = (await self._found([key], open_edition(head, number).slot))[key]
            else:
                return 1
        raise NotAllowed(f"others stage {key.words} all the time: try again")

    async def _found(self, keys: Sequence[PriceKey], slot: datetime) -> dict[PriceKey, Value | None]:
        rows: list[PriceRow | None] = await self._db.get_many([key.row for key in keys])
        return {key: None if row is None else row.values.get(slot) for key, row in zip(keys, rows, strict=True)}


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def _each_once(batch: Iterable[tuple[PriceKey, Value]]) -> dict[PriceKey, Value]:
    wanted: dict[PriceKey, Value] = {}
    for key, value in batch:
        if wanted.setdefault(key, value) != value:
            raise InvalidField("product", f"{key.words} has two prices in one edition: leave one out")
    return wanted
