"""The sparse index on a table you already have: your items, your GSI, and two attributes that say when an item is due."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Self

import msgspec

from tickler.clock import to_ms
from tickler.dynamo import (
    Address,
    Client,
    Condition,
    Item,
    Outcome,
    Statement,
    execute_many,
    from_item,
    get_many,
    to_item,
)
from tickler.dynamo.batches import gathered
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Attribute
from tickler.dynamo.statements import update
from tickler.errors import (
    InvalidInput,
    InvalidWhen,
    NeverFires,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    TicklerError,
)
from tickler.model.limits import check_limit
from tickler.stores.dynamodb.index.due_query import DueQuery, Route, SparseIndex
from tickler.stores.dynamodb.index.user_table_units import MS_PER, Unit, UnitCheck
from tickler.stores.dynamodb.maintenance.sparsity import Sparsity, sparsity_of
from tickler.stores.dynamodb.schema import check_key, describe
from tickler.stores.dynamodb.shards import shard_of
from tickler.stores.dynamodb.table import TRIES, all_of
from tickler.when import KINDS, When, parse_when, when_from_json

log = logging.getLogger("tickler.index")

ERROR = "ticklerError"  # why an item was taken out of the index, on the item

Values = Mapping[str, Any]  # an item, in Python values
WhenOf = Callable[[Values], When | None]


class DueItem(msgspec.Struct, frozen=True):
    """An item that was due, as it was before it was advanced."""

    item: dict[str, Any]
    when: When
    next_fire_at: int  # milliseconds, whatever the unit in the table


class _Seen(NamedTuple):
    """An item as the index shows it: its key, and the two attributes as they were seen, to the letter."""

    key: Item
    status: Attribute
    next: Attribute
    item: Item


class _Plan(NamedTuple):
    """The write that claims an item. `next` is what it leaves there: None for an item that is finished."""

    statement: Statement
    next: Attribute | None = None
    set_aside: str | None = None  # why


class DynamoIndex:
    """Finds and advances what is due in a table of yours. Use it with `async with`.

    An item is in the index while it has `status`, whose value is `active` (or, with `shards`, `active#0` to `active#N-1`), and
    `next`, a number of milliseconds or seconds. `when` says at which instants it is due: the name of an attribute with an
    expression or a weekly plan in it, read with the zone in the attribute `tz`, or a function of the item that returns a When,
    or None for an item that has no schedule. No other attribute is ever changed, but for `ticklerError`. Before its first
    write it looks at a few items: `SchemaMismatch` when they are in another unit than `unit`.
    """

    def __init__(
        self,
        table: str,
        *,
        key: str | Sequence[str],
        when: str | WhenOf,
        status: str = "scheduleStatus",
        next: str = "nextRunAt",
        index: str | None = None,
        unit: Unit = "ms",
        tz: str | None = None,
        active: str = "active",
        shards: int | None = None,
        region: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        if unit not in ("ms", "s"):
            raise InvalidInput(f"unit: {unit!r} is neither 'ms' nor 's'")
        if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= 1024):
            raise InvalidInput(f"shards: {shards!r} is not a whole number from 1 to 1024: leave it out for one partition")
        if not isinstance(when, str) and not callable(when):
            raise InvalidInput(f"when: {when!r} is neither the name of an attribute nor a function of the item")
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._key_types: dict[str, str] = {}
        self._index = SparseIndex(table, index or f"{status}-{next}-index", status, next)
        self._ms = MS_PER[unit]
        self._unit_check = UnitCheck(self._index, unit)
        self._when_of = when if callable(when) else _reader(when, tz)
        self._active = active
        self._shards = shards
        self._route = Route()
        self._whole = True  # the index has all of an item
        self.client = Client(Address(region=region, endpoint=endpoint))

    async def open(self) -> Self:
        """Connect, and see that table and index are keyed as they were named; `SchemaMismatch` says which attribute is not."""
        await self.client.open()
        try:
            self._check(await describe(self.client, self._index.table))
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        await self.client.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def upsert(self, key: object, now_ms: int) -> int | None:
        """Put an item that is in the table into the index, due at the first instant after now; when that is.

        To be called after its schedule was written. None, and out of the index, when it has no schedule. `NeverFires`, and out
        of the index, when it has one without an instant ahead; `InvalidWhen`, and as it was, when it does not read.
        """
        now_ms = to_ms(now_ms, "now_ms")
        wanted = self._key_of(key)
        await self._unit_check.before_write(self.client, self._partitions(), now_ms)
        for attempt in range(1, TRIES + 1):
            found = await get_many(self.client, self._index.table, [wanted])
            if not found:
                raise ScheduleNotFound(self._index.table, str(key))
            if not self._unit_check.is_known and ERROR not in found[0]:
                self._unit_check.refuse(found, now_ms)
            when = self._read(from_item(found[0]))
            next_at = None if when is None else when.next_after(now_ms)
            if await self._place(wanted, found[0], when, next_at):
                if when is not None and next_at is None:
                    raise NeverFires(self._index.table, str(key), f"{str(when)!r} has no instant left; it is out of the index")
                return next_at
            await pause(attempt)
        raise StoreUnavailable(f"{self._index.table}: {key} was changed by others {TRIES} times in a row: try again")

    async def remove(self, key: object) -> None:
        """Take an item out of the index; nothing when it is not in it, or there is no such item."""
        names = [self._index.partition_key, self._index.sort_key, ERROR]
        (outcome,) = all_of(await execute_many(self.client, [self._update(self._key_of(key), {}, {}, names)]))
        if not outcome.lost:
            self._refuse(outcome)

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[DueItem]:
        """Take up to `limit` items that are due, and advance them; nobody else gets the same occurrence.

        Earliest first within this call. An item that has no instant left leaves the index. One whose schedule does not read
        loses its status and says why in `ticklerError`. At most once: an answer that is lost on the way is lost.
        """
        now_ms, limit = to_ms(now_ms, "now_ms"), check_limit(limit)
        partitions = self._partitions()
        await self._unit_check.before_write(self.client, partitions, now_ms)
        until: Attribute = {"N": str(Decimal(now_ms) / self._ms)}
        search = DueQuery(self.client, self._index, until, self._seen, identity=lambda seen: msgspec.json.encode(seen.key))
        search.over(self._route.order(partitions), self._route.width(partitions, limit))
        claimed: list[DueItem] = []
        try:
            while len(claimed) < limit and (due := await search.take(limit - len(claimed))):
                await self._claim(await self._with_items(due), now_ms, claimed)
        except TicklerError as error:
            if not claimed:
                raise
            log.warning("a claim got %d of %d items and then failed: %s", len(claimed), limit, error)  # they are ours: not lost
        self._route.learn(full=len(claimed) == limit)
        return sorted(claimed, key=lambda each: each.next_fire_at)

    async def next_due(self) -> int | None:
        """The earliest that is in the index, in milliseconds, or None."""

        async def earliest(partition: str) -> list[int]:
            request = {
                "TableName": self._index.table,
                "IndexName": self._index.name,
                "KeyConditionExpression": "#partition = :partition",
                "ExpressionAttributeNames": {"#partition": self._index.partition_key},
                "ExpressionAttributeValues": {":partition": {"S": partition}},
                "Limit": 1,
            }
            page = await self.client.call("Query", request)
            return [self._due_at(self._seen(item)) for item in page["Items"]]

        found = all_of(await gathered(map(earliest, self._partitions())))
        return min((at for each in found for at in each), default=None)

    async def sparsity(self) -> Sparsity:
        """How much of the table is in the index, as DynamoDB has last counted: every six hours or so.

        It should be little. `tickler doctor --scan` counts anew, and says what is wrong.
        """
        description = await describe(self.client, self._index.table)
        if description is None:
            raise SchemaMismatch(f"dynamodb://{self._index.table}", "the table is gone: check its name and region=")
        return sparsity_of(description, self._index.name)

    # What is in the table.

    def _check(self, description: dict[str, Any] | None) -> None:
        label = f"dynamodb://{self._index.table}"
        if description is None:
            raise SchemaMismatch(label, f"{self.client.endpoint} has no such table: check its name, region= and endpoint=")
        types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
        keyed_on = [each["AttributeName"] for each in sorted(description["KeySchema"], key=lambda each: each["KeyType"])]
        if list(self._key) != keyed_on:
            wrong = next((name for name in self._key if name not in keyed_on), keyed_on[-1])
            found, given = " and ".join(map(repr, keyed_on)), " and ".join(map(repr, self._key))
            raise SchemaMismatch(label, f"the table is keyed on {found}, and key= says {given or 'nothing'}", wrong)
        self._key_types = {name: types[name] for name in self._key}
        indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}
        if self._index.name not in indexes:
            there = ", ".join(indexes) or "none"
            raise SchemaMismatch(label, f"there is no index {self._index.name!r}, but {there}: pass index=", self._index.name)
        index = indexes[self._index.name]
        wanted = {self._index.partition_key: "S", self._index.sort_key: "N"}
        check_key(label, f"the index {self._index.name!r}", index["KeySchema"], types, wanted)
        self._whole = index["Projection"]["ProjectionType"] == "ALL"

    def _partitions(self) -> list[str]:
        """With shards, the plain value too: items from before there were any move as they advance."""
        return [self._active, *(f"{self._active}#{shard}" for shard in range(self._shards or 0))]

    def _status(self, key: Item) -> Attribute:
        if self._shards is None:
            return {"S": self._active}
        return {"S": f"{self._active}#{shard_of(msgspec.json.encode(key), self._shards)}"}

    def _key_of(self, key: object) -> Item:
        values = key if isinstance(key, Mapping) else dict(zip(self._key, [key], strict=False))
        if set(values) != set(self._key):
            raise InvalidInput(f"key: {key!r} does not say which item: pass {', '.join(self._key)}, as a dict if they are two")
        item = to_item(values, keys=self._key)
        for name, wanted in self._key_types.items():
            if wanted not in item[name]:
                raise InvalidInput(f"key: {values[name]!r} cannot be the key {name!r}, which is of type {wanted}")
        return {name: item[name] for name in self._key}

    def _number(self, at_ms: int) -> Attribute:
        return {"N": str(-(-at_ms // self._ms))}  # seconds are rounded up: never early

    def _seen(self, item: Item) -> _Seen:
        key = {name: item[name] for name in self._key}
        return _Seen(key, item[self._index.partition_key], item[self._index.sort_key], item)

    def _due_at(self, seen: _Seen) -> int:
        return math.ceil(Decimal(seen.next["N"]) * self._ms)

    def _read(self, item: Values) -> When | None:
        """Its schedule. `InvalidWhen` for whatever goes wrong in reading it: a function of the user's may raise anything."""
        try:
            when = self._when_of(item)
        except InvalidWhen:
            raise
        except Exception as error:
            raise InvalidWhen(
                "when", str({name: item.get(name) for name in self._key}), f"{type(error).__name__}: {error}", inside=True
            ) from error
        if when is not None and type(when) not in KINDS:
            raise InvalidWhen("when", repr(when)[:80], f"is a {type(when).__name__}, and must be a When or None")
        return when

    async def _place(self, key: Item, seen: Item, when: When | None, next_at: int | None) -> bool:
        """Put an item into the index, or take it out. False when somebody has changed it, or its schedule, in between."""
        status, next = self._index.partition_key, self._index.sort_key
        values = {} if next_at is None else {status: self._status(key), next: self._number(next_at)}
        gone = [ERROR] if values else [status, next, ERROR]
        (outcome,) = all_of(await execute_many(self.client, [self._update(key, values, {next: seen.get(next)}, gone)]))
        if outcome.lost:
            return False
        self._refuse(outcome)
        assert outcome.item is not None
        try:
            return outcome.item == seen or self._read(from_item(outcome.item)) == when
        except InvalidWhen:
            return False

    # Claiming.

    async def _with_items(self, due: Sequence[_Seen]) -> list[_Seen]:
        """With all of each item, where the index has only a part."""
        if self._whole:
            return list(due)
        found = await get_many(self.client, self._index.table, [seen.key for seen in due])
        whole = {msgspec.json.encode({name: item[name] for name in self._key}): item for item in found}
        return [seen._replace(item=whole[place]) for seen in due if (place := msgspec.json.encode(seen.key)) in whole]

    async def _claim(self, due: Sequence[_Seen], now_ms: int, claimed: list[DueItem]) -> None:
        """Claim these items, as far as nobody else does; add what was won."""
        plans = [self._plan(seen, now_ms) for seen in due]
        outcomes = await execute_many(self.client, [plan.statement for plan in plans])
        failure: Exception | None = None
        aside: list[str] = []
        for seen, plan, outcome in zip(due, plans, outcomes, strict=True):
            if isinstance(outcome, Exception):
                failure = outcome
            elif outcome.done and plan.set_aside is not None:
                aside.append(f"{from_item(seen.key)}: {plan.set_aside}")
            elif outcome.done:
                assert outcome.item is not None
                claimed += await self._confirmed(seen, outcome.item, plan.next, now_ms)
            elif not outcome.lost:
                failure = TicklerError(f"{self._index.table}: {from_item(seen.key)} could not be claimed: {outcome.code}")
        if aside:
            log.warning(
                "%s: set aside %d due items that do not read, first %s; mend them and upsert them, `tickler doctor --scan` "
                "names them", self._index.table, len(aside), aside[0],
            )  # fmt: skip
        if failure is not None:
            raise failure

    def _plan(self, seen: _Seen, now_ms: int) -> _Plan:
        status, next = self._index.partition_key, self._index.sort_key
        condition: Condition = {status: seen.status, next: seen.next}
        try:
            if (misread := self._unit_check.misread(seen.item, now_ms)) is not None:
                raise InvalidWhen("when", str(from_item(seen.key)), misread, inside=True)
            when = self._read(from_item(seen.item))
            if when is None:
                raise InvalidWhen("when", str(from_item(seen.key)), "is missing, but the item says that it is active")
        except InvalidWhen as error:
            reason = str(error)[:500]
            return _Plan(self._update(seen.key, {ERROR: {"S": reason}}, condition, [status]), set_aside=reason)
        next_at = when.next_after(now_ms)
        if next_at is None:
            return _Plan(self._update(seen.key, {}, condition, [status, next]))
        values = {next: self._number(next_at), status: self._status(seen.key)}
        return _Plan(self._update(seen.key, values, condition), values[next])

    async def _confirmed(self, seen: _Seen, old: Item, written: Attribute | None, now_ms: int) -> list[DueItem]:
        """The item as it was when it was claimed. If its schedule was newer than the index knew, it is advanced again."""
        try:
            when = self._read(from_item(old))
        except InvalidWhen:
            when = None
        if when is None:
            return []  # changed in between, and not yet put into the index again by whoever changed it
        next_at = when.next_after(now_ms)
        right = None if next_at is None else self._number(next_at)
        if right != written:
            status, next = self._index.partition_key, self._index.sort_key
            values = {} if right is None else {next: right, status: self._status(seen.key)}
            again = self._update(seen.key, values, {next: written}, [] if right else [status, next])
            (outcome,) = await execute_many(self.client, [again])
            if isinstance(outcome, Exception) or not (outcome.done or outcome.lost):
                log.warning("%s: %s is in the index by its former schedule: %s", self._index.table, from_item(seen.key), outcome)
        return [DueItem(from_item(old), when, self._due_at(seen))]

    def _update(self, key: Item, values: Item, condition: Condition, remove: Sequence[str] = ()) -> Statement:
        return update(self._index.table, key, values, condition, remove, old=True)

    def _refuse(self, outcome: Outcome) -> None:
        if not outcome.done:
            raise TicklerError(f"{self._index.table}: DynamoDB refused the write: {outcome.code}")


def _reader(attribute: str, tz_attribute: str | None) -> WhenOf:
    def read(item: Values) -> When | None:
        value = item.get(attribute)
        if value is None:
            return None
        tz = (item[tz_attribute] or "") if tz_attribute is not None and tz_attribute in item else None  # NULL is no zone
        if isinstance(value, str):
            return parse_when(value, tz)
        return when_from_json(value if not isinstance(value, Mapping) or "weekly" in value else {"weekly": value}, tz)

    return read
