"""Reads: items by key, and slices of a partition of the table or of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tickler.dynamo.batches import get_many
from tickler.errors import InvalidInput
from tickler.table.engines.dynamodb.connection import Connection, misfit
from tickler.table.engines.dynamodb.expressions import Expressions, grouped
from tickler.table.engines.dynamodb.items import ENTITY, key_of
from tickler.table.engines.engine import Ask, Position, Slice
from tickler.table.key import ItemId
from tickler.table.selection import Span

MAX_LIMIT = 1_000  # items that one request looks at


class _Head(msgspec.Struct, gc=False):
    entity: dict[str, str]


class _RawPage(msgspec.Struct, gc=False):
    """A page of items of several entities, each decoded once its entity is known."""

    Items: list[msgspec.Raw] = []
    LastEvaluatedKey: dict[str, Any] | None = None
    ConsumedCapacity: Any = None


class _Counted(msgspec.Struct, gc=False):
    Count: int
    LastEvaluatedKey: dict[str, Any] | None = None
    ConsumedCapacity: Any = None


_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_raw_page = msgspec.json.Decoder(_RawPage).decode
_decode_count = msgspec.json.Decoder(_Counted).decode


class DynamodbReader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        connection = self._connection
        if len(ids) == 1:
            return [await self._get_one(ids[0], consistent, now_ms)]
        keys = {(id.pk, id.sk): key_of(id) for id in ids}
        with connection.translated():
            found = await get_many(connection.client, connection.name, list(keys.values()), consistent=consistent)
        by_key = {(raw["pk"]["S"], raw["sk"]["S"]): raw for raw in found}
        return [connection.seen(id, by_key.get((id.pk, id.sk)), now_ms).entity for id in ids]

    async def _get_one(self, id: ItemId[Any], consistent: bool, now_ms: int) -> Any:
        wire = self._connection.wires[id.definition.name]
        try:
            answer = await self._connection.call("GetItem", {"Key": key_of(id), "ConsistentRead": consistent}, wire.decode_get)
        except msgspec.ValidationError:
            raw = await self._connection.call("GetItem", {"Key": key_of(id), "ConsistentRead": consistent}, _decode)
            return self._connection.seen(id, raw.get("Item"), now_ms).entity  # raises, and says of which entity it is
        if answer.Item is msgspec.UNSET:
            return None
        entity = wire.build(answer.Item)
        return entity if self._connection.is_alive(entity, now_ms) else None

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice:
        """Read a slice. With a filter, one request's worth: the caller goes on at `resume` if that is too little."""
        _check_consistency(ask)
        items: list[Any] = []
        positions: list[Position] = []
        resume, limit = ask.start, ask.limit
        while not _is_empty(ask.span):
            found, places, resume = await self._page(ask, resume, min(limit, MAX_LIMIT), now_ms)
            for entity, place in zip(found, places, strict=True):
                if ask.span.contains(str(place[0])) and self._connection.is_alive(entity, now_ms):
                    items.append(entity)
                    positions.append(place)
            if resume is None and len(items) <= ask.limit:
                break
            if len(items) >= ask.limit:
                return Slice(items[: ask.limit], positions[: ask.limit], positions[ask.limit - 1])
            if ask.where is not None:
                return Slice(items, positions, resume)
            limit *= 2  # other entities share the partition
        return Slice(items, positions, None)

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        ask = Ask(span, 0, entities, consistent=consistent)
        _check_consistency(ask)
        if _is_empty(span):
            return 0
        total = await self._count(ask, now_ms)
        if span.low is not None and span.high is not None and not span.high_included:
            beyond = span._replace(low=span.high, high_included=True)
            total -= await self._count(msgspec.structs.replace(ask, span=beyond), now_ms)
        return total

    async def _count(self, ask: Ask, now_ms: int) -> int:
        request = self._query(ask, now_ms) | {"Select": "COUNT"}
        total = 0
        while True:
            answer = await self._connection.call("Query", request, _decode_count)
            total += answer.Count
            if answer.LastEvaluatedKey is None:
                return total
            request["ExclusiveStartKey"] = answer.LastEvaluatedKey

    async def _page(
        self, ask: Ask, start: Position | None, limit: int, now_ms: int
    ) -> tuple[list[Any], list[Position], Position | None]:
        request = self._query(ask, now_ms) | {"Limit": limit}
        if start is not None:
            request["ExclusiveStartKey"] = _start_key(ask.span, start)
        only = next(iter(ask.entities)) if len(ask.entities) == 1 else None
        sort = "sk" if ask.span.gsi is None else f"{ask.span.gsi}sk"
        try:
            if only is not None:
                wire = self._connection.wires[only]
                page = await self._connection.call("Query", request, wire.decode_page)
                found, entities = page.Items, [wire.build(each) for each in page.Items]
            else:
                page = await self._connection.call("Query", request, _decode_raw_page)
                found, entities = self._mixed(page.Items)
        except msgspec.ValidationError as error:
            raise misfit(only or "an item", error) from None
        places: list[Position] = [(getattr(each, sort).S, each.pk.S, each.sk.S) for each in found]
        last = page.LastEvaluatedKey
        return entities, places, None if last is None else (last[sort]["S"], last["pk"]["S"], last["sk"]["S"])

    def _mixed(self, raws: Sequence[msgspec.Raw]) -> tuple[list[Any], list[Any]]:
        wires = [self._connection.wires[_decode_head(raw).entity["S"]] for raw in raws]
        found = [wire.decode_item(raw) for wire, raw in zip(wires, raws, strict=True)]
        return found, [wire.build(each) for wire, each in zip(wires, found, strict=True)]

    def _query(self, ask: Ask, now_ms: int) -> dict[str, object]:
        expressions = Expressions()
        index = {} if ask.span.gsi is None else {"IndexName": ask.span.gsi}
        request = {
            "KeyConditionExpression": _key_condition(expressions, ask.span),
            "FilterExpression": self._filter(expressions, ask, now_ms),
            "ScanIndexForward": not ask.backwards,
            "ConsistentRead": ask.consistent,
        }
        return {**index, **request, **expressions.fields(*request.values())}

    def _filter(self, expressions: Expressions, ask: Ask, now_ms: int) -> str:
        """Return the filter by entity, expiry and `where`, which lets items of other entities than its own pass."""
        about = None if ask.where is None else next(iter(ask.where.leaves())).path.attribute.entity
        alternatives = []
        for name in sorted(ask.entities):
            definition = self._connection.table.entities[name]
            parts = [f"{expressions.name(ENTITY)} = {expressions.value({'S': name})}"]
            alive = expressions.alive(definition, now_ms)
            if alive is not None:
                parts.append(alive)
            if ask.where is not None and definition.cls is about:
                parts.append(expressions.condition(ask.where))
            alternatives.append(" AND ".join(parts))
        return " OR ".join(grouped(each) for each in alternatives)


def _check_consistency(ask: Ask) -> None:
    if ask.consistent and ask.span.gsi is not None:
        raise InvalidInput("consistent=True: an index of DynamoDB cannot be read consistently: leave it out")


def _key_condition(expressions: Expressions, span: Span) -> str:
    partition, sort = ("pk", "sk") if span.gsi is None else (f"{span.gsi}pk", f"{span.gsi}sk")
    condition = f"{expressions.name(partition)} = {expressions.value({'S': span.partition})}"
    if span.low is None and span.high is None:
        return condition
    name = expressions.name(sort)
    bounds = [expressions.value({"S": bound}) for bound in (span.low, span.high) if bound is not None]
    if len(bounds) == 2:  # an excluded bound is left out by the caller: DynamoDB has no such range
        return f"{condition} AND {name} BETWEEN {bounds[0]} AND {bounds[1]}"
    operator = ">=" if span.low is not None else "<=" if span.high_included else "<"
    return f"{condition} AND {name} {operator} {bounds[0]}"


def _start_key(span: Span, start: Position) -> dict[str, object]:
    sort, pk, sk = map(str, start)
    key: dict[str, object] = {"pk": {"S": pk}, "sk": {"S": sk}}
    return key if span.gsi is None else {**key, f"{span.gsi}pk": {"S": span.partition}, f"{span.gsi}sk": {"S": sort}}


def _is_empty(span: Span) -> bool:
    return span.low is not None and span.high is not None and span.low > span.high
