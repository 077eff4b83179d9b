"""Derives the schema of a table from its definition. Nothing is read or connected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tickler.table.attribute import Path
from tickler.table.attribute_type import alternatives_of, plain_type
from tickler.table.declaration import MISSING, Attribute
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.key import Index, Key
from tickler.table.path_type import can_be_missing
from tickler.table.schema.access_patterns import access_patterns, patterns_of_shared
from tickler.table.schema.examples import example_key
from tickler.table.schema.predicate_text import membership_text, optional_paths, path_text
from tickler.table.schema.schema import (
    AttributeSchema,
    EntitySchema,
    KeyComponent,
    KeySchema,
    Role,
    Schema,
    SharedPartition,
)
from tickler.table.schema.source_text import type_source, value_source
from tickler.table.template import KeyPart, Template

Pair = Key[Any, Any, Any] | Index[Any, Any]


def describe(table: TableDefinition) -> Schema:
    """Return the schema of a table with the entities that are defined by now."""
    definitions = list(table.entities.values())
    groups = shared_partitions(definitions)
    patterns = [pattern for definition in definitions for pattern in access_patterns(definition)]
    return Schema(
        table.name,
        tuple(map(_entity, definitions)),
        tuple(table.gsis),
        tuple(map(_shared, groups)),
        (*patterns, *(pattern for group in groups for pattern in patterns_of_shared(group))),
    )


def name_of(pair: Pair) -> str:
    """Return the name that the class gives to its key or index."""
    return pair.name.rpartition(".")[2]


def class_of(pair: Pair) -> str:
    return str(pair.bound().cls.__name__)


def shared_partitions(definitions: Iterable[EntityDefinition]) -> list[list[Pair]]:
    """Return the keys and indexes whose partition keys have the same form, where they are of several entities."""
    groups: dict[object, list[Pair]] = {}
    for definition in definitions:
        pairs: list[Pair] = [definition.key, *definition.indexes]
        for pair in pairs:
            groups.setdefault((gsi_of(pair), _form(pair.pk)), []).append(pair)
    return [group for group in groups.values() if len({pair.definition for pair in group}) > 1]


def gsi_of(pair: Pair) -> str | None:
    return pair.gsi if isinstance(pair, Index) else None


def _form(template: Template[*tuple[Any, ...]]) -> tuple[object, ...]:
    return tuple(
        (component.codec.kind, component.descending) if isinstance(component, KeyPart) else component
        for component in template.components
    )


def _shared(group: list[Pair]) -> SharedPartition:
    pattern = "#".join(each if isinstance(each, str) else "…" for each in group[0].pk.components)
    names = tuple(f"{class_of(pair)}.{name_of(pair)}" for pair in group)
    return SharedPartition(gsi_of(group[0]), pattern, names, tuple(dict.fromkeys(map(class_of, group))))


def _entity(definition: EntityDefinition) -> EntitySchema:
    return EntitySchema(
        definition.cls.__name__,
        definition.name,
        tuple(_attribute(path) for path in definition.paths.values()),
        (_key(definition.key), *map(_key, definition.indexes)),
    )


def _attribute(path: Path[Any, Any]) -> AttributeSchema:
    attribute = path.attribute
    has_default = attribute.default not in (msgspec.NODEFAULT, MISSING)
    return AttributeSchema(
        attribute.name,
        type_source(attribute.type),
        can_be_missing(path),
        value_source(attribute.default) if has_default else None,
        _role(attribute),
        tuple(_attribute(field) for field in _fields(attribute)),
    )


def _fields(attribute: Attribute) -> Iterable[Path[Any, Any]]:
    """Return the fields of the part that an attribute is."""
    kinds = [plain_type(kind) for kind in alternatives_of(attribute.type)]
    return [field for kind in kinds for field in getattr(kind, "__paths__", {}).values()]


def _role(attribute: Attribute) -> Role | None:
    role = attribute.role
    return "version" if role.version else "expires" if role.expires else "deleted" if role.deleted else None


def _key(pair: Pair) -> KeySchema:
    return KeySchema(
        class_of(pair),
        name_of(pair),
        gsi_of(pair),
        _components(pair.pk),
        _components(pair.sk),
        example_key(pair),
        membership_text(pair) if isinstance(pair, Index) else None,
        _deciding(pair) if isinstance(pair, Index) else (),
    )


def _deciding(index: Index[Any, Any]) -> tuple[str, ...]:
    conditions = [] if index.when is None else [leaf.path for leaf in index.when.leaves()]
    return tuple(dict.fromkeys(path.attribute.name for path in [*conditions, *optional_paths(index)]))


def _components(template: Template[*tuple[Any, ...]]) -> tuple[KeyComponent, ...]:
    return tuple(
        KeyComponent(component)
        if isinstance(component, str)
        else KeyComponent(path_text(component.path), component.path.attribute.name, component.descending)
        for component in template.components
    )
