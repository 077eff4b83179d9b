"""The schema of a table as a value: what `Table.describe` returns, and what the terminal, the page and JSON show."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["version", "expires", "deleted"]


class AttributeSchema(msgspec.Struct, frozen=True):
    """An attribute of an entity. `fields` are those of the part that it is; `default` is the text of its default."""

    name: str
    type: str
    optional: bool = False
    default: str | None = None
    role: Role | None = None
    fields: tuple[AttributeSchema, ...] = ()


class KeyComponent(msgspec.Struct, frozen=True):
    """A constant, or what an attribute becomes in a key: the name of the attribute, and for a field within it the whole path."""

    text: str
    attribute: str | None = None
    descending: bool = False

    def __str__(self) -> str:
        return self.text if self.attribute is None else f"{{{self.text}{' desc' if self.descending else ''}}}"


class KeySchema(msgspec.Struct, frozen=True):
    """The primary key of an entity, or its key in an index of the table.

    `when` says in words while what an item has this key, None if always; `deciding` are the attributes on which that depends.
    `example` are both halves of a key that the table would write.
    """

    entity: str
    name: str
    gsi: str | None
    partition: tuple[KeyComponent, ...]
    sort: tuple[KeyComponent, ...]
    example: tuple[str, str]
    when: str | None = None
    deciding: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.entity}.{self.name}"

    @property
    def partition_text(self) -> str:
        return key_text(self.partition)

    @property
    def sort_text(self) -> str:
        return key_text(self.sort)


class EntitySchema(msgspec.Struct, frozen=True):
    """An entity by the name of its class. `keys` are its primary key, and then its indexes as declared."""

    name: str
    stored_as: str
    attributes: tuple[AttributeSchema, ...]
    keys: tuple[KeySchema, ...]

    def keys_in(self, gsi: str | None) -> tuple[KeySchema, ...]:
        """Return its keys in the table itself (None), or in an index of it."""
        return tuple(key for key in self.keys if key.gsi == gsi)


class SharedPartition(msgspec.Struct, frozen=True):
    """A form of partition keys that several entities have, so that one query returns items of all of them."""

    gsi: str | None
    pattern: str
    keys: tuple[str, ...]
    entities: tuple[str, ...]


class AccessPattern(msgspec.Struct, frozen=True):
    """A call that the keys of a table make possible, as Python with the names of attributes for values, and what it answers."""

    call: str
    answer: str
    entities: tuple[str, ...]
    gsi: str | None = None


class Schema(msgspec.Struct, frozen=True):
    """A table: its entities, its indexes, the partitions that entities share, and the calls that it answers."""

    table: str
    entities: tuple[EntitySchema, ...]
    gsis: tuple[str, ...]
    shared: tuple[SharedPartition, ...]
    access_patterns: tuple[AccessPattern, ...]

    def keys_in(self, gsi: str | None) -> tuple[KeySchema, ...]:
        """Return the keys of all entities in the table itself (None), or in an index of it."""
        return tuple(key for entity in self.entities for key in entity.keys_in(gsi))


def key_text(components: tuple[KeyComponent, ...]) -> str:
    """Return a half of a key as in `ORDER#{placed_at}#{id}`."""
    return "#".join(map(str, components))
