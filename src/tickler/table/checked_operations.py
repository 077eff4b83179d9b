"""Makes operations, checked against their entities, for single writes and for transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tickler.errors import InvalidInput
from tickler.table.change import Change
from tickler.table.condition import Condition
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.key import ItemId, not_an_id
from tickler.table.operation import Check, Delete, Put, Update, initial_entity
from tickler.table.reads import CheckEntity


class CheckedOperations:
    def __init__(self, table: TableDefinition, check: CheckEntity) -> None:
        self._table = table
        self._check_entity = check

    def put(self, entity: Any, when: Condition[Any] | None = None, must: Literal["any", "create", "replace"] = "any") -> Put:
        definition = self._table.definition_of(entity)
        self._check_entity(definition)
        definition.check_condition(when)
        return Put(definition.id_of(entity), entity, when, must)

    def update(self, id: ItemId[Any], changes: Sequence[Change[Any]], when: Condition[Any] | None) -> Update:
        self._check(id, changes, when)
        return Update(id, changes, when)

    def upsert(self, id: ItemId[Any], changes: Sequence[Change[Any]], when: Condition[Any] | None) -> Update:
        self._check(id, changes, when)
        return Update(id, changes, when, initial_entity(id, changes))

    def delete(self, id: ItemId[Any], when: Condition[Any] | None) -> Delete:
        self._owned(id).check_condition(when)
        return Delete(id, when)

    def check(self, id: ItemId[Any], when: Condition[Any]) -> Check:
        self._owned(id).check_condition(when)
        return Check(id, when)

    def _check(self, id: ItemId[Any], changes: Sequence[Change[Any]], when: Condition[Any] | None) -> None:
        definition = self._owned(id)
        definition.check_condition(when)
        if not changes:
            raise InvalidInput("update: pass at least one change, such as Order.status.set(…)")
        for change in changes:
            if not isinstance(change, Change):
                raise InvalidInput(f"update: {change!r} is no change: use set, add, remove or append, as in Order.status.set(…)")
            definition.check_change(change)
        _refuse_overlap(changes)

    def _owned(self, id: ItemId[Any]) -> EntityDefinition:
        if not isinstance(id, ItemId):
            raise not_an_id(id)
        self._check_entity(id.definition)
        return id.definition


def _refuse_overlap(changes: Sequence[Change[Any]]) -> None:
    """Refuse two changes of which one lies within the other: the result would depend on their order."""
    steps = [(change.path.attribute, *change.path.steps) for change in changes]
    for n, one in enumerate(steps):
        for m, other in enumerate(steps):
            if n != m and one == other[: len(one)]:
                raise InvalidInput(f"update: {changes[n]!r} and {changes[m]!r} change the same place: keep one of them")
