"""What a table consists of: entities, their keys, and the indexes that they share. A class is checked when it is defined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from tickler.errors import InvalidInput, InvalidItem
from tickler.table.attribute import Path
from tickler.table.attribute_type import contains, has_no_order, plain_type
from tickler.table.change import Change, Remove, Set
from tickler.table.condition import UNKNOWN, Condition, Contains, Lookup, StartsWith
from tickler.table.declaration import Attribute
from tickler.table.disjoint import never_both
from tickler.table.key import Index, ItemId, Key, KeyPair
from tickler.table.path_type import (
    can_be_missing,
    check_member,
    check_steps,
    check_text,
    check_value,
    encode,
    encode_in_order,
    key_kind,
    only_kind,
    set_type,
)
from tickler.table.rendering import RenderKeys, no_keys, renderer, slots_renderer, value_at
from tickler.table.stored_value import TOO_LARGE, find_problem, has_long_number, is_read_back
from tickler.table.template import KeyPart, disjoint

MAX_PARTITION_BYTES = 1_500
MAX_SORT_BYTES = 1_024
MAX_ITEM_BYTES = 400 * 1024
MAX_BYTES_OF_CHARACTER = 4  # in UTF-8
RESERVED_NAMES = frozenset({"pk", "sk", "entity", "ttl"})
METADATA_PARTITION = "!TABLE"  # of what engines keep beside the items


Cells = tuple[Any, ...]  # of a row: pk, sk, entity, expires_at, body, and both halves of the key of each index


class Row(NamedTuple):
    """An item as it is stored. `keys` has both halves of its key in each index of the table in which it is."""

    pk: str
    sk: str
    entity: str
    expires_at: int | None
    body: bytes
    keys: Mapping[str, tuple[str, str]]


class EntityDefinition:
    """One entity: its attributes, its key and its indexes."""

    def __init__(self, cls: type, name: str, gsis: Mapping[str, int]) -> None:
        self.cls: Any = cls
        self.name = name
        self.gsis = gsis  # all indexes of the table, which grow until it is opened
        self.paths: dict[str, Path[Any, Any]] = dict(cls.__paths__)  # type: ignore[attr-defined]  # of the metaclass
        self.attributes: dict[str, Attribute] = {key: path.attribute for key, path in self.paths.items()}
        declared = {key: each for key, each in vars(cls).items() if isinstance(each, Key | Index)}
        self.indexes = [each for each in declared.values() if isinstance(each, Index)]
        keys = [each for each in declared.values() if isinstance(each, Key)]
        if len(keys) != 1:
            raise InvalidInput(f'{name}: declare one key, as in `key = Key("{name.upper()}" / id, "PROFILE")`')
        self.key = keys[0]
        self.version = self._with_role("version")
        self.expires = self._with_role("expires")
        self.deleted = self._with_role("deleted")
        for each_name, each in declared.items():
            each.name, each.definition = f"{name}.{each_name}", self
        self._check()
        self._render_pk = renderer(self.key.pk)
        self._render_sk = renderer(self.key.sk)
        self._rendered_gsis = -1  # how many indexes the table had when this was made:
        self._render_all: RenderKeys = no_keys
        self.decode_one: Callable[[bytes], Any] = msgspec.json.Decoder(cls).decode
        self.decode_list: Callable[[bytes], list[Any]] = msgspec.json.Decoder(list[cls]).decode  # type: ignore[valid-type]

    @cached_property
    def slots(self) -> dict[str, list[Index[Any, Any]]]:
        """The indexes of this entity by the index of the table that they use. An item has one key in each."""
        slots: dict[str, list[Index[Any, Any]]] = {}
        for index in self.indexes:
            slots.setdefault(index.gsi, []).append(index)
        return slots

    def lookup(self, entity: object) -> Lookup:
        return lambda path: value_at(entity, path)

    def id_of(self, entity: object) -> ItemId[Any]:
        return ItemId(self, *self._key_of(entity))

    def slot_key(self, gsi: str, lookup: Lookup) -> KeyPair | object | None:
        """Return the key of an item in an index of the table, None if it is not in it, UNKNOWN if that cannot be told."""
        unknown = False
        for index in self.slots.get(gsi, ()):
            position = index.position(lookup)
            if isinstance(position, tuple):
                return position
            unknown = unknown or position is UNKNOWN
        return UNKNOWN if unknown else None

    def expires_at(self, entity: object) -> int | None:
        """Return the millisecond from which on an item is absent."""
        if self.expires is None:
            return None
        found = getattr(entity, self.expires.name)
        return int(found.timestamp() * 1000) if isinstance(found, datetime) else None

    def encode(self, entity: object) -> bytes:
        """Return the attributes of an item as JSON, checked against their types and the limits of an item."""
        try:
            body = encode_in_order(entity) if self._has_one_order(entity) else encode(entity)
            decoded = self.decode_one(body)
        except (msgspec.MsgspecError, UnicodeEncodeError, TypeError) as error:
            self._check_values(entity, self.attributes)
            raise InvalidItem(self.name, _reason(error)) from None
        if decoded != entity:
            self._check_values(entity, self.attributes)
            self._check_types(entity, decoded)
        elif self._has_large_integer(entity, body):
            self._check_values(entity, self.attributes)
        elif self._with_fractions:
            self._check_values(entity, self._with_fractions)
        for name in self._optional_sets:
            if getattr(entity, name) in (set(), frozenset()):
                raise InvalidItem(self.name, f"{name} is an empty set, which is stored as no attribute: leave it out")
        if len(body) > MAX_ITEM_BYTES:
            raise InvalidItem(
                self.name, f"has {len(body):,} bytes, and an item may have {MAX_ITEM_BYTES:,}: keep large values elsewhere"
            )
        return body

    def _has_one_order(self, entity: object) -> bool:
        """Tell whether an item has nothing to sort, though its type has maps. To sort these takes five times as long."""
        if self._plain_maps is None:
            return False
        for name in self._plain_maps:  # noqa: SIM110  # a generator would cost as much as the sorting
            if len(getattr(entity, name)) > 1:
                return False
        return True

    @cached_property
    def _plain_maps(self) -> list[str] | None:
        """The attributes that are maps, if nothing in these or in the others has an order; None if something has."""
        unordered = {name: plain_type(each.type) for name, each in self.attributes.items() if has_no_order(each.type)}
        are_plain = all(get_origin(kind) is dict and not has_no_order(get_args(kind)[1]) for kind in unordered.values())
        return list(unordered) if unordered and are_plain else None

    def _check_values(self, entity: object, names: Iterable[str]) -> None:
        for name in names:
            problem = find_problem(getattr(entity, name), name)
            if problem is not None:
                raise InvalidItem(self.name, problem)

    def _has_large_integer(self, entity: object, body: bytes) -> bool:
        """Tell whether there may be an integer of too many digits. JSON does not bound them."""
        for name in self._integers:
            if not -TOO_LARGE < getattr(entity, name) < TOO_LARGE:
                return True
        return self._has_inner_integers and has_long_number(body)

    def _check_types(self, entity: object, decoded: object) -> None:
        """Raise `InvalidItem` if a value is of another type than declared: constructors do not look."""
        for name in self.attributes:
            value = getattr(entity, name)
            if not is_read_back(value, getattr(decoded, name)):
                raise InvalidItem(
                    self.name, f"{name} is {value!r}, of another type than declared: pass {getattr(decoded, name)!r}"
                )

    @cached_property
    def _optional_sets(self) -> list[str]:
        return [name for name, path in self.paths.items() if set_type(path) and can_be_missing(path)]

    @cached_property
    def _with_fractions(self) -> list[str]:
        """The attributes with numbers whose range JSON does not bound."""
        return [name for name, attribute in self.attributes.items() if contains(attribute.type, (float, Decimal))]

    @cached_property
    def _integers(self) -> list[str]:
        return [name for name, attribute in self.attributes.items() if plain_type(attribute.type) is int]

    @cached_property
    def _has_inner_integers(self) -> bool:
        """Whether there are integers elsewhere: in unions, lists, maps or parts."""
        return any(contains(each.type, (int,)) for name, each in self.attributes.items() if name not in self._integers)

    def decode(self, body: bytes) -> Any:
        try:
            return self.decode_one(body)
        except msgspec.MsgspecError as error:
            raise InvalidItem(self.name, f"is stored with other attributes than the class has: {error}") from None

    def cells(self, entity: object) -> Cells:
        """Return an item as a row of an SQL table, checked against the limits of keys."""
        pk, sk = self._key_of(entity)
        keys = self._render_index_keys(entity)
        characters = len(pk) + len(sk)
        for key in keys:
            if key is not None:
                characters += len(key)
        if characters * MAX_BYTES_OF_CHARACTER > MAX_SORT_BYTES:
            self.check_lengths([pk, sk, *keys])
        expires_at = None if self.expires is None else self.expires_at(entity)
        return (pk, sk, self.name, expires_at, self.encode(entity), *keys)

    def row(self, entity: object) -> Row:
        pk, sk, name, expires_at, body, *keys = self.cells(entity)
        halves = iter(keys)
        pairs = zip(self.gsis, halves, halves, strict=True)
        return Row(pk, sk, name, expires_at, body, {gsi: (one, other) for gsi, one, other in pairs if one is not None})

    def check_lengths(self, keys: Sequence[str | None]) -> None:
        """Raise `InvalidItem` unless the halves of keys, of the item and then of each index, are short enough."""
        for text, most in zip(keys, (MAX_PARTITION_BYTES, MAX_SORT_BYTES) * (1 + len(self.gsis)), strict=True):
            if text is not None and len(text.encode()) > most:
                raise InvalidItem(
                    self.name, f"has a key of {len(text.encode()):,} bytes, and {most:,} fit: shorten {text[:40]!r}…"
                )

    def _render_index_keys(self, entity: object) -> tuple[str | None, ...]:
        if self._rendered_gsis != len(self.gsis):
            self._render_all = slots_renderer([self.slots.get(gsi, []) for gsi in self.gsis])
            self._rendered_gsis = len(self.gsis)
        return self._render_all(entity)

    def _key_of(self, entity: object) -> KeyPair:
        pk, sk = self._render_pk(entity), self._render_sk(entity)
        assert pk is not None  # key attributes cannot be missing: checked at definition
        assert sk is not None
        return pk, sk

    def check_condition(self, condition: Condition[Any] | None) -> None:
        """Raise `InvalidInput` if a condition is about another entity, or compares with a value of another type."""
        if condition is None:
            return
        for leaf in condition.leaves():
            self.check_path(leaf.path)
            for value in leaf.operands():
                check_value(leaf.path, value)
            if isinstance(leaf, Contains):
                check_member(leaf.path, leaf.value)
            elif isinstance(leaf, StartsWith):
                check_text(leaf.path, leaf.value)

    def check_change(self, change: Change[Any]) -> None:
        path = change.path
        self.check_path(path)
        if path.attribute in self.key_attributes:
            raise InvalidInput(
                f"{change!r}: {path.attribute.name} is part of the primary key: put a new item and delete this one"
            )
        if path.attribute is self.version:
            raise InvalidInput(f"{change!r}: each write raises {path.attribute.name} by itself")
        for value in change.operands():
            check_value(path, value)
        if isinstance(change, Set) and change.value in (set(), frozenset()) and can_be_missing(path):
            raise InvalidInput(f"{change!r}: an empty set is stored as no attribute: use {path!r}.remove()")
        if isinstance(change, Remove) and not can_be_missing(path):
            raise InvalidInput(f"{change!r}: {path!r} is always present: declare it as `| Missing`, with default=MISSING")

    @cached_property
    def key_attributes(self) -> frozenset[Attribute]:
        return frozenset([*self.key.pk.attributes(), *self.key.sk.attributes()])

    def check_path(self, path: Path[Any, Any]) -> None:
        if path.attribute.entity is not self.cls:
            raise InvalidInput(f"{path!r} is not an attribute of {self.name}: use those of {self.name}")
        if path.steps:
            check_steps(path)

    def _with_role(self, role: str) -> Attribute | None:
        found = [attribute for attribute in self.attributes.values() if getattr(attribute.role, role)]
        if len(found) > 1:
            raise InvalidInput(f"{self.name}: {' and '.join(each.name for each in found)} cannot both be attr({role}=True)")
        if found and role != "version" and only_kind(found[0]) is not datetime:
            raise InvalidInput(f"{self.name}.{found[0].name}: attr({role}=True) needs the type Attr[datetime | Missing]")
        if found and role == "version" and found[0].type is not int:
            raise InvalidInput(f"{self.name}.{found[0].name}: attr(version=True) needs the type Attr[int]")
        return found[0] if found else None

    def _check(self) -> None:
        for reserved in self.attributes.keys() & (
            RESERVED_NAMES | {f"{gsi}{half}" for gsi in self.gsis for half in ("pk", "sk")}
        ):
            raise InvalidInput(f"{self.name}.{reserved}: the table uses this name itself: choose another")
        pairs: list[Key[Any, Any, Any] | Index[Any, Any]] = [self.key, *self.indexes]
        if self.key.pk.components == (METADATA_PARTITION,):
            raise InvalidInput(f"{self.key.name}: the table keeps its own items under {METADATA_PARTITION!r}: choose another")
        for pair in pairs:
            for template in (pair.pk, pair.sk):
                template.check(pair.name)
                for part in template.parts:
                    self._bind(pair, part)
        for index in self.indexes:
            self.check_condition(index.when)
        for one, other in combinations(self.indexes, 2):
            if one.gsi == other.gsi and not never_both(one.membership(), other.membership()):
                raise InvalidInput(
                    f"{one.name} and {other.name} share {one.gsi}, where an item has one key, and both may hold for the same "
                    f"item: give them `when=` conditions that exclude each other, or another index"
                )

    def _bind(self, pair: Key[Any, Any, Any] | Index[Any, Any], part: KeyPart) -> None:
        self.check_path(part.path)
        kind, optional = key_kind(part.path)
        where = f"{pair.name}: {part.path!r}"
        if part.path.steps and isinstance(pair, Key):
            raise InvalidInput(f"{where} is inside a part, and a primary key never changes: make it an attribute of {self.name}")
        if optional and isinstance(pair, Key):
            raise InvalidInput(f"{where} can be missing, and a primary key is never: declare it without Missing")
        try:
            part.bind(kind)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None


class TableDefinition:
    """The entities of a table, and the indexes that they share. `stream`: its changes are kept for consumers."""

    def __init__(self, name: str, *, stream: bool = False) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,47}", name):
            raise InvalidInput(f"table {name!r}: use lower-case letters, digits and _, 48 at most")
        self.name = name
        self.stream = stream
        self.entities: dict[str, EntityDefinition] = {}
        self.generation = 0  # counts the classes that were added
        self._by_class: dict[type, EntityDefinition] = {}
        self.gsis: dict[str, int] = {}  # in order of their names

    def add(self, cls: type, name: str) -> EntityDefinition:
        """Add an entity. Called by its class statement."""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
            raise InvalidInput(f"entity {name!r}: use letters, digits and _, 100 at most")
        if name in self.entities:
            raise InvalidInput(
                f"{name}: the table {self.name!r} has an entity of this name already: choose another, or stored_as="
            )
        before = dict(self.gsis)
        try:
            return self._added(cls, name)
        except InvalidInput:
            self.gsis.clear()
            self.gsis.update(before)
            raise

    def _added(self, cls: type, name: str) -> EntityDefinition:
        for index in vars(cls).values():
            if isinstance(index, Index):
                self._add_gsi(name, index.gsi)
        definition = EntityDefinition(cls, name, self.gsis)
        for other in self.entities.values():
            if not disjoint(definition.key.pk, other.key.pk) and not disjoint(definition.key.sk, other.key.sk):
                raise InvalidInput(
                    f"{name} and {other.name} can have the same key ({definition.key.pk!r}, {definition.key.sk!r}): give their "
                    "keys a constant that differs at the same place"
                )
        self.entities[name] = self._by_class[cls] = definition
        self.generation += 1
        return definition

    def definition_of(self, entity: object) -> EntityDefinition:
        return self._by_class.get(type(entity)) or self.definition_for(type(entity))

    def definition_for(self, cls: type) -> EntityDefinition:
        definition = self._by_class.get(cls)
        if definition is not None:
            return definition
        raise InvalidInput(f"{cls.__name__} is not an entity of the table {self.name!r}: define it with table={self.name}")

    def _add_gsi(self, entity: str, gsi: str) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", gsi):
            raise InvalidInput(f"{entity}: index {gsi!r}: use a name such as 'gsi1'")
        for definition in self.entities.values():
            for taken in definition.attributes.keys() & {f"{gsi}pk", f"{gsi}sk"}:
                raise InvalidInput(f"{entity}: index {gsi!r}: {definition.name} has an attribute {taken}: choose another name")
        names = sorted({*self.gsis, gsi})
        self.gsis.clear()
        self.gsis.update({name: number for number, name in enumerate(names)})


def _reason(error: Exception) -> str:
    """Return what msgspec says, with the attribute in front."""
    text, _, place = str(error).partition(" - at `$")
    text = f"{text[:1].lower()}{text[1:]}"
    return f"{place.strip('`.')}: {text}: pass a value of the type that the class declares" if place else text
