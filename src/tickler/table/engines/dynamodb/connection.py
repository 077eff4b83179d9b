"""One table on DynamoDB: its client, its name, and how the items of each entity are read. Translates errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed, RequestRefused, TransactionCancelled
from tickler.errors import InvalidInput, InvalidItem, SchemaMissing, StoreUnavailable
from tickler.table.definition import MAX_ITEM_BYTES, EntityDefinition, TableDefinition
from tickler.table.engines.dynamodb.items import entity_name
from tickler.table.engines.dynamodb.requests import Seen
from tickler.table.engines.dynamodb.wire import EntityWire
from tickler.table.engines.rows import is_alive, other_entity, unknown_entity
from tickler.table.key import ItemId

T = TypeVar("T")


class Connection:
    def __init__(self, table: TableDefinition, client: Client, name: str) -> None:
        self.table = table
        self.client = client
        self.name = name
        self.label = f"dynamodb://{name}"

    @cached_property
    def wires(self) -> dict[str, EntityWire]:
        """Made on first use, because entities may be added until then."""
        return {name: EntityWire(definition) for name, definition in self.table.entities.items()}

    async def call(self, operation: str, request: dict[str, object], decode: Callable[[bytes], T], *, once: bool = False) -> T:
        with self.translated():
            return await self.client.call_decoded(operation, {"TableName": self.name, **request}, decode, once=once)

    def seen(self, id: ItemId[Any], raw: Item | None, now_ms: int) -> Seen:
        """Return an item as it was read, which may be missing or expired. `SchemaMismatch` if it is of another entity."""
        if raw is None:
            return Seen(None, None)
        if (name := entity_name(raw)) != id.definition.name:
            raise other_entity(self.table, id, name)
        entity = self.entity(raw)
        return Seen(raw, entity if self.is_alive(entity, now_ms) else None)

    def entity(self, raw: Item) -> Any:
        name = entity_name(raw)
        if name not in self.wires:
            raise unknown_entity(self.table, name)
        try:
            return self.wires[name].entity(raw)
        except msgspec.ValidationError as error:
            raise misfit(name, error) from None

    def is_alive(self, entity: Any, now_ms: int) -> bool:
        definition: EntityDefinition = self.table.definition_of(entity)
        return definition.expires is None or is_alive(definition.expires_at(entity), now_ms)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn what DynamoDB refuses for good into our errors."""
        try:
            yield
        except (ConditionFailed, TransactionCancelled):
            raise
        except RequestRefused as error:
            if error.code == "ResourceNotFound":
                raise SchemaMissing(self.label, self.name) from error
            if "size has exceeded" in error.message or "size to update has exceeded" in error.message:
                raise InvalidItem("an item", f"has more than {MAX_ITEM_BYTES:,} bytes: keep large values elsewhere") from error
            if error.code.startswith("Validation"):
                raise InvalidInput(f"{self.label}: DynamoDB refused a request: {error.message}: change what it names") from error
            raise StoreUnavailable(f"{self.label}: {error}") from error


def misfit(entity: str, error: msgspec.ValidationError) -> InvalidItem:
    return InvalidItem(entity, f"is stored with other attributes than the class has: {error}")
