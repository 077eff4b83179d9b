"""A sparse index on a table you already have: your items, your GSI, and two attributes that say when an item is due."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Self

import msgspec

from tickler.aws.address import Address
from tickler.clock import to_ms
from tickler.dynamo.batches import Outcome, execute_many, gathered, get_many
from tickler.dynamo.client import Client, pause
from tickler.dynamo.codec import Attribute, Item, from_item, to_item
from tickler.dynamo.statements import Condition, Statement, update
from tickler.dynamo.tables import check_key, describe
from tickler.errors import InvalidInput, InvalidWhen, NeverFires, ScheduleNotFound, SchemaMismatch, StoreUnavailable, TicklerError
from tickler.model.limits import check_limit
from tickler.stores.dynamodb.index.due_query import DueQuery, Route, SparseIndex
from tickler.stores.dynamodb.index.user_table_units import MS_PER, Unit, UnitCheck
from tickler.stores.dynamodb.layout import shard_of
from tickler.stores.dynamodb.maintenance.sparsity import Sparsity, sparsity_of
from tickler.stores.dynamodb.table import TRIES, all_of
from tickler.when import KINDS, When, parse_when, when_from_json

log = logging.getLogger("tickler.index")

_CHECK_POLICY = "check that these credentials may do PartiQLUpdate on the table"
ERROR = "ticklerError"  # attribute of an item: why it was taken out of the index

Values = Mapping[str, Any]  # an item, in Python values
WhenOf = Callable[[Values], When | None]


class DueItem(msgspec.Struct, frozen=True):
    """A claimed item, as it was before the claim advanced it."""

    item: dict[str, Any]
    when: When
    next_fire_at: int  # milliseconds, whatever the unit in the table


class _Seen(NamedTuple):
    """An item as read from the index: its key, and the two index attributes exactly as stored."""

    key: Item
    status: Attribute
    next: Attribute
    item: Item


class _Plan(NamedTuple):
    """The write that claims an item. `next` is the new instant, or None if the item is finished."""

    statement: Statement
    next: Attribute | None = None
    set_aside: str | None = None  # the reason


class DynamoIndex:
    """Finds and advances due items in a table of yours. Use it with `async with`.

    An item is in the index while it has both `status`, whose value is `active` (or, with `shards`, `active#0` to
    `active#N-1`), and `next`, a number of milliseconds or seconds. `when` is either the name of an attribute that holds an
    expression or a weekly plan, read in the zone of the attribute `tz`, or a function of the item that returns a When, or None
    for an item without a schedule. The index changes `status`, `next` and `ticklerError`, and no other attribute. Before its
    first write it reads a few items, and raises `SchemaMismatch` if they are not in `unit`.
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
            raise InvalidInput(f"unit: must be 'ms' or 's', not {unit!r}")
        if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= 1024):
            raise InvalidInput(f"shards: must be a whole number from 1 to 1024, not {shards!r}: leave it out for one partition")
        if not isinstance(when, str) and not callable(when):
            raise InvalidInput(f"when: must be the name of an attribute or a function of the item, not {when!r}")
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._key_types: dict[str, str] = {}
        self._index = SparseIndex(table, index or f"{status}-{next}-index", status, next)
        self._ms = MS_PER[unit]
        self._unit_check = UnitCheck(self._index, unit)
        self._when_of = when if callable(when) else _reader(when, tz)
        self._active = active
        self._shards = shards
        self._route = Route()
        self._projects_all = True
        self.client = Client(Address(region=region, endpoint=endpoint))

    async def open(self) -> Self:
        """Connect, and check the keys of table and index. Raises `SchemaMismatch`, which names the wrong attribute."""
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
        """Index an existing item, due at its first instant after now, and return that instant.

        Call it after each write of the item's schedule. An item without a schedule leaves the index, and the result is None. An
        item whose schedule has no instant left leaves the index, and `NeverFires` is raised. An unreadable schedule raises
        `InvalidWhen`, and changes nothing.
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
            if await self._write_place(wanted, found[0], when, next_at):
                if when is not None and next_at is None:
                    raise NeverFires(self._index.table, str(key), f"{str(when)!r} has no instant left; the item left the index")
                return next_at
            await pause(attempt)
        raise StoreUnavailable(f"{self._index.table}: {key} was changed by others {TRIES} times in a row: try again")

    async def remove(self, key: object) -> None:
        """Take an item out of the index. Does nothing if it is not indexed or does not exist."""
        names = [self._index.partition_key, self._index.sort_key, ERROR]
        (outcome,) = all_of(await execute_many(self.client, [self._update(self._key_of(key), {}, {}, names)]))
        if not outcome.lost:
            self._refuse(outcome)

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[DueItem]:
        """Claim up to `limit` due items and advance them. No other caller gets the same occurrence.

        Returns the earliest first, within this call. An item with no instant left leaves the index. An item with an unreadable
        schedule loses its status and gets the reason in `ticklerError`. At most once: if the response is lost, so are its fires.
        """
        now_ms, limit = to_ms(now_ms, "now_ms"), check_limit(limit)
        partitions = self._partitions()
        await self._unit_check.before_write(self.client, partitions, now_ms)
        until: Attribute = {"N": str(Decimal(now_ms) / self._ms)}
        query = DueQuery(self.client, self._index, until, self._seen, identity=lambda seen: msgspec.json.encode(seen.key))
        query.set_partitions(self._route.rotate(partitions), self._route.width(partitions, limit))
        claimed: list[DueItem] = []
        try:
            while len(claimed) < limit and (due := await query.take(limit - len(claimed))):
                await self._claim(await self._with_items(due), now_ms, claimed)
        except TicklerError as error:
            if not claimed:
                raise
            log.warning("claimed %d of %d items, then failed: %s", len(claimed), limit, error)  # the caller still gets them
        self._route.note_claim(full=len(claimed) == limit)
        return sorted(claimed, key=lambda each: each.next_fire_at)

    async def next_due(self) -> int | None:
        """Return the earliest instant in the index, in milliseconds, or None."""

        async def earliest(partition: str) -> list[int]:
            page = await self.client.call("Query", {**self._index.query(partition), "Limit": 1})
            return [self._due_at(self._seen(item)) for item in page["Items"]]

        found = all_of(await gathered(map(earliest, self._partitions())))
        return min((at for each in found for at in each), default=None)

    async def sparsity(self) -> Sparsity:
        """Return how much of the table is in the index, as DynamoDB last counted it, about every six hours.

        The share should be small. `tickler doctor --scan` counts again, and reports what is wrong.
        """
        description = await describe(self.client, self._index.table)
        if description is None:
            raise SchemaMismatch(f"dynamodb://{self._index.table}", "the table no longer exists: check its name and region=")
        return sparsity_of(description, self._index.name)

    # Items.

    def _check(self, description: dict[str, Any] | None) -> None:
        label = f"dynamodb://{self._index.table}"
        if description is None:
            raise SchemaMismatch(label, f"{self.client.endpoint} has no such table: check its name, region= and endpoint=")
        types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
        keyed_on = [each["AttributeName"] for each in sorted(description["KeySchema"], key=lambda each: each["KeyType"])]
        if list(self._key) != keyed_on:
            wrong = next((name for name in self._key if name not in keyed_on), keyed_on[-1])
            found, given = " and ".join(map(repr, keyed_on)), " and ".join(map(repr, self._key))
            raise SchemaMismatch(label, f"key= has {given or 'nothing'}, but the table is keyed on {found}: pass that", wrong)
        self._key_types = {name: types[name] for name in self._key}
        indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}
        if self._index.name not in indexes:
            name, existing = self._index.name, ", ".join(indexes) or "none"
            raise SchemaMismatch(label, f"there is no index {name!r}: pass index= with an existing one ({existing})", name)
        index = indexes[self._index.name]
        wanted = {self._index.partition_key: "S", self._index.sort_key: "N"}
        check_key(label, f"the index {self._index.name!r}", index["KeySchema"], types, wanted)
        self._projects_all = index["Projection"]["ProjectionType"] == "ALL"

    def _partitions(self) -> list[str]:
        """Return the values of `status`. With shards, the plain value too: older items move to a shard as they advance."""
        return [self._active, *(f"{self._active}#{shard}" for shard in range(self._shards or 0))]

    def _status(self, key: Item) -> Attribute:
        if self._shards is None:
            return {"S": self._active}
        return {"S": f"{self._active}#{shard_of(msgspec.json.encode(key), self._shards)}"}

    def _key_of(self, key: object) -> Item:
        values = key if isinstance(key, Mapping) else dict(zip(self._key, [key], strict=False))
        if set(values) != set(self._key):
            raise InvalidInput(f"key: {key!r} does not identify an item: pass {', '.join(self._key)}, as a dict if there are two")
        item = to_item(values, keys=self._key)
        for name, wanted in self._key_types.items():
            if wanted not in item[name]:
                raise InvalidInput(f"key: {values[name]!r} has the wrong type: pass a {name!r} of type {wanted}")
        return {name: item[name] for name in self._key}

    def _number(self, at_ms: int) -> Attribute:
        return {"N": str(-(-at_ms // self._ms))}  # seconds are rounded up: never early

    def _seen(self, item: Item) -> _Seen:
        key = {name: item[name] for name in self._key}
        return _Seen(key, item[self._index.partition_key], item[self._index.sort_key], item)

    def _due_at(self, seen: _Seen) -> int:
        return math.ceil(Decimal(seen.next["N"]) * self._ms)

    def _read(self, item: Values) -> When | None:
        """Read an item's schedule. Turns every error into `InvalidWhen`, because the user's function may raise anything."""
        try:
            when = self._when_of(item)
        except InvalidWhen:
            raise
        except Exception as error:
            raise InvalidWhen(
                "when", str({name: item.get(name) for name in self._key}), f"{type(error).__name__}: {error}", inside=True
            ) from error
        if when is not None and type(when) not in KINDS:
            raise InvalidWhen("when", repr(when)[:80], f"is a {type(when).__name__}: return a When or None")
        return when

    async def _write_place(self, key: Item, seen: Item, when: When | None, next_at: int | None) -> bool:
        """Put an item into the index, or take it out. Returns False if the item or its schedule was changed in between."""
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
        """Read the whole items, if the index projects only a part."""
        if self._projects_all:
            return list(due)
        found = await get_many(self.client, self._index.table, [seen.key for seen in due])
        whole = {msgspec.json.encode({name: item[name] for name in self._key}): item for item in found}
        return [seen._replace(item=whole[place]) for seen in due if (place := msgspec.json.encode(seen.key)) in whole]

    async def _claim(self, due: Sequence[_Seen], now_ms: int, claimed: list[DueItem]) -> None:
        """Claim these items, and add to `claimed` those that no other worker got first."""
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
                failure = TicklerError(
                    f"{self._index.table}: cannot claim {from_item(seen.key)} ({outcome.code}): {_CHECK_POLICY}"
                )
        if aside:
            log.warning(
                "%s: set aside %d unreadable due items, first %s; fix and upsert them (`tickler doctor --scan` lists them)",
                self._index.table, len(aside), aside[0],
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
                raise InvalidWhen("when", str(from_item(seen.key)), "the item is active, but has no schedule", inside=True)
        except InvalidWhen as error:
            reason = str(error)[:500]
            return _Plan(self._update(seen.key, {ERROR: {"S": reason}}, condition, [status]), set_aside=reason)
        next_at = when.next_after(now_ms)
        if next_at is None:
            return _Plan(self._update(seen.key, {}, condition, [status, next]))
        values = {next: self._number(next_at), status: self._status(seen.key)}
        return _Plan(self._update(seen.key, values, condition), values[next])

    async def _confirmed(self, seen: _Seen, old: Item, written: Attribute | None, now_ms: int) -> list[DueItem]:
        """Return the item as it was when claimed. If its schedule was newer than the index showed, advance it again."""
        try:
            when = self._read(from_item(old))
        except InvalidWhen:
            when = None
        if when is None:
            return []  # changed in between; the upsert that follows the change will index it
        next_at = when.next_after(now_ms)
        right = None if next_at is None else self._number(next_at)
        if right != written:
            status, next = self._index.partition_key, self._index.sort_key
            values = {} if right is None else {next: right, status: self._status(seen.key)}
            again = self._update(seen.key, values, {next: written}, [] if right else [status, next])
            (outcome,) = await execute_many(self.client, [again])
            if isinstance(outcome, Exception) or not (outcome.done or outcome.lost):
                log.warning(
                    "%s: cannot apply the new schedule of %s, upsert it: %s", self._index.table, from_item(seen.key), outcome
                )
        return [DueItem(from_item(old), when, self._due_at(seen))]

    def _update(self, key: Item, values: Item, condition: Condition, remove: Sequence[str] = ()) -> Statement:
        return update(self._index.table, key, values, condition, remove, old=True)

    def _refuse(self, outcome: Outcome) -> None:
        if not outcome.done:
            raise TicklerError(f"{self._index.table}: DynamoDB refused the write ({outcome.code}): {_CHECK_POLICY}")


def _reader(attribute: str, tz_attribute: str | None) -> WhenOf:
    def read(item: Values) -> When | None:
        value = item.get(attribute)
        if value is None:
            return None
        tz = (item[tz_attribute] or "") if tz_attribute is not None and tz_attribute in item else None  # NULL counts as no zone
        if isinstance(value, str):
            return parse_when(value, tz)
        return when_from_json(value if not isinstance(value, Mapping) or "weekly" in value else {"weekly": value}, tz)

    return read
