"""A unit of work: reads happen at once, writes are collected, and one commit writes all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tickler.errors import InvalidInput
from tickler.table.change import Change
from tickler.table.condition import Condition
from tickler.table.key import ItemId
from tickler.table.operation import Check, Operation

if TYPE_CHECKING:
    from tickler.table.open_table import OpenTable

E = TypeVar("E")


class Transaction:
    """Collects writes until the `async with` block ends. If the block raises, nothing is written."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._operations: dict[tuple[str, str], Operation] = {}
        self._closed = False

    def put(self, entity: Any, *, when: Condition[Any] | None = None) -> None:
        self._add(self._table.operations.put(entity, when))

    def create(self, entity: Any) -> None:
        self._add(self._table.operations.put(entity, None, "create"))

    def update(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> None:
        self._add(self._table.operations.update(id, changes, when))

    def upsert(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> None:
        self._add(self._table.operations.upsert(id, changes, when))

    def delete(self, id: ItemId[E], *, when: Condition[E] | None = None) -> None:
        self._add(self._table.operations.delete(id, when))

    def check(self, id: ItemId[E], when: Condition[E]) -> None:
        """Write nothing to an item, but let the whole transaction fail unless a condition holds for it."""
        self._table.operations.check(id, when)
        self._add(Check(id, when))

    def collected(self) -> list[Operation]:
        self._closed = True
        return list(self._operations.values())

    def _add(self, operation: Operation) -> None:
        id = operation.id
        if self._closed:
            raise InvalidInput("this transaction has ended: begin another one")
        if (id.pk, id.sk) in self._operations:
            raise InvalidInput(f"{id!r} is in this transaction already: a transaction has one operation for each item")
        self._operations[id.pk, id.sk] = operation
