"""Writes of one item each, and the pure decision what they leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from tickler.errors import ConditionFailed, InvalidInput, ItemNotFound, VersionConflict
from tickler.table.change import Change, Set, apply
from tickler.table.condition import Condition
from tickler.table.declaration import MISSING
from tickler.table.definition import EntityDefinition
from tickler.table.key import ItemId
from tickler.table.path_type import typed


class Put(msgspec.Struct, frozen=True):
    """Stores an item as a whole. `must` says whether one with its key may, must not, or has to exist."""

    id: ItemId[Any]
    entity: Any
    when: Condition[Any] | None = None
    must: Literal["any", "create", "replace"] = "any"


class Update(msgspec.Struct, frozen=True):
    """Changes an item. With `initial`, a missing item is created from it first."""

    id: ItemId[Any]
    changes: Sequence[Change[Any]]
    when: Condition[Any] | None = None
    initial: Any = None


class Delete(msgspec.Struct, frozen=True):
    """Deletes an item. Without a condition, a missing one is fine."""

    id: ItemId[Any]
    when: Condition[Any] | None = None


class Check(msgspec.Struct, frozen=True):
    """Writes nothing, and fails the transaction unless the condition holds."""

    id: ItemId[Any]
    when: Condition[Any]


Operation = Put | Update | Delete | Check


def decide(operation: Operation, found: Any) -> Any:
    """Return the entity that is stored after an operation, None if there is none. `found` is the one before, or None.

    Raises `ConditionFailed`, `ItemNotFound` or `VersionConflict` where the operation must not happen.
    """
    id = operation.id
    if isinstance(operation, Update) and found is None and operation.initial is None:
        raise ItemNotFound(id.definition.name, id.pk, id.sk)
    check_condition(operation, found)
    if isinstance(operation, Put):
        return _put(operation, found)
    if isinstance(operation, Update):
        base = operation.initial if found is None else found
        return with_next_version(id.definition, apply(operation.changes, base))
    return None if isinstance(operation, Delete) else found


def check_condition(operation: Operation, found: Any) -> None:
    """Raise `ConditionFailed` unless the condition of an operation holds for what is stored."""
    if operation.when is not None:
        lookup = operation.id.definition.lookup(found) if found is not None else _nothing
        if not operation.when.evaluate(lookup):
            raise ConditionFailed(repr(operation.id), repr(operation.when), found)
    if isinstance(operation, Put) and operation.must != "any" and (found is None) != (operation.must == "create"):
        demand = "that it does not exist yet" if operation.must == "create" else "that it exists"
        raise ConditionFailed(repr(operation.id), demand, found)


def with_next_version(definition: EntityDefinition, entity: Any) -> Any:
    """Return an entity with the next version."""
    if definition.version is None:
        return entity
    name = definition.version.name
    return replace(entity, **{name: getattr(entity, name) + 1})


def initial_entity(id: ItemId[Any], changes: Sequence[Change[Any]]) -> Any:
    """Return the item that an upsert creates: its key, defaults, and what the changes set. They apply once more afterwards."""
    definition = id.definition
    values = key_values(id)
    values |= {
        change.path.attribute.name: change.value for change in changes if isinstance(change, Set) and not change.path.steps
    }
    absent = [
        name for name, attribute in definition.attributes.items() if name not in values and attribute.default is msgspec.NODEFAULT
    ]
    if absent:
        raise InvalidInput(f"upsert of a {definition.name} may have to create it: set {', '.join(absent)} too")
    return definition.cls(**values)


def key_values(id: ItemId[Any]) -> dict[str, object]:
    """Return the attributes that the primary key of an item tells."""
    definition = id.definition
    values: dict[str, object] = {}
    for template, text in ((definition.key.pk, id.pk), (definition.key.sk, id.sk)):
        for part, value in zip(template.parts, template.parse(text), strict=True):
            values[part.path.attribute.name] = typed(part.path, value)
    return values


def is_blind(operation: Operation) -> bool:
    """Tell whether an operation is a put that depends on nothing that is stored."""
    return (
        isinstance(operation, Put)
        and operation.when is None
        and operation.must == "any"
        and operation.id.definition.version is None
    )


def version_conflict(operation: Put, found: Any) -> VersionConflict | None:
    """Return the error if a put is of another version than the stored one."""
    version = operation.id.definition.version
    if version is None:
        return None
    expected = getattr(operation.entity, version.name)
    stored = 0 if found is None else getattr(found, version.name)
    return None if expected == stored else VersionConflict(repr(operation.id), expected, stored)


def _put(operation: Put, found: Any) -> Any:
    conflict = version_conflict(operation, found)
    if conflict is not None:
        raise conflict
    return with_next_version(operation.id.definition, operation.entity)


def _nothing(path: object) -> object:
    return MISSING
