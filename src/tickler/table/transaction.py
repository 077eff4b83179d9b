"""A unit of work: reads happen at once, writes are collected, and one commit does all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import ConditionFailed, InvalidInput, ItemNotFound, TransactionConflict
from tickler.table.change import Change
from tickler.table.condition import And, Compare, Condition
from tickler.table.declaration import MISSING
from tickler.table.definition import EntityDefinition
from tickler.table.key import ItemId
from tickler.table.operation import Check, Operation

if TYPE_CHECKING:
    from tickler.table.open_table import OpenTable

E = TypeVar("E")


class Transaction(UnitOfWork):
    """Collects writes until the `async with` block ends. If the block raises, nothing is written.

    What it has read with `get` must be the same when it commits; otherwise `TransactionConflict`, and nothing is written. Pass it
    as `using=` to let schedules join.
    """

    def __init__(self, table: OpenTable) -> None:
        super().__init__(table.engine.database)
        self._table = table
        self._make = table.operations
        self._operations: dict[tuple[str, str], Operation] = {}
        self._reads: dict[tuple[str, str], tuple[ItemId[Any], Condition[Any]]] = {}

    async def get(self, id: ItemId[E]) -> E | None:
        """Return an item as it is now. It must not change until the transaction commits."""
        if (id.pk, id.sk) in self._operations:
            raise InvalidInput(f"{id!r} is written by this transaction already: read it first")
        found = await self._table.get(id)
        guard = _absent(id.definition) if found is None else _unchanged(id.definition, found)
        _, earlier = self._reads.setdefault((id.pk, id.sk), (id, guard))
        if _fails(earlier, id.definition, found):
            raise TransactionConflict(repr(id))  # it has changed since it was read before
        return found

    def put(self, entity: E, *, when: Condition[E] | None = None) -> None:
        self._add(self._make.put(entity, when))

    def create(self, entity: Any) -> None:
        self._add(self._make.put(entity, None, "create"))

    def replace(self, entity: E, *, when: Condition[E] | None = None) -> None:
        self._add(self._make.put(entity, when, "replace"))

    def update(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> None:
        self._add(self._make.update(id, changes, when))

    def upsert(self, id: ItemId[E], *changes: Change[E], when: Condition[E] | None = None) -> None:
        self._add(self._make.upsert(id, changes, when))

    def delete(self, id: ItemId[E], *, when: Condition[E] | None = None) -> None:
        self._add(self._make.delete(id, when))

    def check(self, id: ItemId[E], when: Condition[E]) -> None:
        """Write nothing to an item, but let the whole transaction fail unless a condition holds for it."""
        self._add(self._make.check(id, when))

    @property
    def operations(self) -> list[Operation]:
        """What a commit does: the writes, and checks of what was only read; nothing if there is nothing to write or to check."""
        if not self._operations and not self.parts:
            return []
        reads = [Check(id, guard) for key, (id, guard) in self._reads.items() if key not in self._operations]
        return [*map(self._guarded, self._operations.values()), *reads]

    async def commit(self, now_ms: int) -> None:
        """Write everything. Called at the end of the block."""
        self.is_over = True
        operations = self.operations
        if not operations and not self.parts:
            return  # it only read
        try:
            await self._table.engine.write(operations, now_ms=now_ms, parts=self.parts)
        except ConditionFailed as error:
            raise self._conflict(error.name, error.found) or error from None
        except ItemNotFound as error:
            raise self._conflict(error.name, None) or error from None
        self.committed()

    def _add(self, operation: Operation) -> None:
        id = operation.id
        if self.is_over:
            raise InvalidInput("this transaction has ended: begin another one")
        if (id.pk, id.sk) in self._operations:
            raise InvalidInput(f"{id!r} is in this transaction already: a transaction has one operation for each item")
        self._operations[id.pk, id.sk] = operation

    def _guarded(self, operation: Operation) -> Operation:
        read = self._reads.get((operation.id.pk, operation.id.sk))
        if read is None:
            return operation
        return replace(operation, when=read[1] if operation.when is None else And([operation.when, read[1]]))

    def _conflict(self, name: str, found: Any) -> TransactionConflict | None:
        """Return the conflict if an item is not as it was read."""
        for id, guard in self._reads.values():
            if repr(id) == name and _fails(guard, id.definition, found):
                return TransactionConflict(name)
        return None


def _fails(condition: Condition[Any] | None, definition: EntityDefinition, found: Any) -> bool:
    return condition is not None and not condition.evaluate((lambda _: MISSING) if found is None else definition.lookup(found))


def _unchanged(definition: EntityDefinition, entity: Any) -> Condition[Any]:
    """Return the condition that an item has the same attributes as when it was read.

    A version alone would not tell an item from one that was deleted and created again.
    """
    values = [(definition.paths[name], getattr(entity, name)) for name in definition.attributes]
    return And([path.missing() if value is MISSING else Compare(path, "=", value) for path, value in values])


def _absent(definition: EntityDefinition) -> Condition[Any]:
    """Return the condition that an item does not exist: an attribute that each has is missing."""
    for name, attribute in definition.attributes.items():
        if attribute.default is msgspec.NODEFAULT:
            return definition.paths[name].missing()
    raise InvalidInput(f"{definition.name} has no attribute that every item has, so its absence cannot be checked: use create")
