"""Writes the prices of an open edition to their rows, in batches. Nobody sees them before the edition is sealed and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct

from pricebook.editions.head_writes import Cause, HeadWrites, Plan
from pricebook.editions.storage import Storage
from pricebook.editions.timing import whole_milliseconds
from pricebook.editions.transitions import ever_counts
from pricebook.errors import InvalidField, NotAllowed, PriceConflict
from pricebook.model import CombinationPrice, Edition, Head, Price, PriceKey, PriceRow, Value
from pricebook.money import Money
from tickler.errors import ConditionFailed
from tickler.table import MISSING, Change, Condition, evolve

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
    def __init__(self, storage: Storage, writes: HeadWrites) -> None:
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
        edition = open_edition(head, number)
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
            writes = [each for key in sorted(wanted) if (each := _write(key, wanted[key], found[key], head)) is not None]
            try:
                async with self._db.transaction() as tx:
                    for key, change, condition in writes:
                        tx.upsert(key.row, change, when=condition)
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
            write = _write(key, value, found, head)
            if write is None:
                return 0
            try:
                await self._db.upsert(key.row, write[1], when=write[2])
            except ConditionFailed:
                head = await self._writes.head(head.store)
                found = (await self._found([key], open_edition(head, number).slot))[key]
            else:
                return 1
        raise NotAllowed(f"store {head.store}: others stage {key} all the time: try again")

    async def _found(self, keys: Sequence[PriceKey], slot: datetime) -> dict[PriceKey, Value | None]:
        ids: list[Any] = [key.row for key in keys]  # of two entities
        rows: list[PriceRow | None] = await self._db.get_many(ids)
        return {key: None if row is None else row.values.get(slot) for key, row in zip(keys, rows, strict=True)}


def open_edition(head: Head, number: int) -> Edition:
    edition = head.editions.get(number)
    if edition is None or edition.state != "open" or edition.to_at is not MISSING:
        raise NotAllowed(f"edition {number} of store {head.store} is not open: open another one")
    return edition


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def slot_of(key: PriceKey, slot: datetime) -> Any:
    """Return the path to the value of a row at an instant."""
    return Price.values[slot] if key.combination is None else CombinationPrice.values[slot]


def _each_once(batch: Iterable[tuple[PriceKey, Value]]) -> dict[PriceKey, Value]:
    wanted: dict[PriceKey, Value] = {}
    for key, value in batch:
        if wanted.setdefault(key, value) != value:
            raise InvalidField("product", f"{key} has two prices in one edition: leave one out")
    return wanted


def _write(key: PriceKey, value: Value, found: Value | None, head: Head) -> tuple[PriceKey, Change[Any], Condition[Any]] | None:
    """Return how to stage a value where `found` was read, None if it is there. Refuses to take the place of another price."""
    if found == value:
        return None
    path = slot_of(key, open_edition(head, _number(value)).slot)
    if found is None:
        return key, path.set(value), path.missing()
    if found.edition is MISSING:
        raise PriceConflict(head.store, str(key), None)
    if found.edition == value.edition:
        raise NotAllowed(f"edition {found.edition} of store {head.store} has another price for {key}: open another edition")
    other = head.editions.get(found.edition)
    if found.edition >= head.next_edition or (other is not None and (other.to_at is MISSING or ever_counts(other))):
        raise PriceConflict(head.store, str(key), found.edition)
    return key, path.set(value), path == found


def _number(value: Value) -> int:
    assert value.edition is not MISSING, "a value is staged for an edition"
    return value.edition
