"""Conditions and changes as DynamoDB's expressions, which mean what they mean in `decide`.

Conditions are on effective values: an absent attribute with a default counts as that default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from tickler.dynamo.codec import Attribute as Value
from tickler.dynamo.codec import Item
from tickler.table.attribute import Path
from tickler.table.condition import And, Compare, Condition, Contains, Exists, Leaf, Not, OneOf, Or, StartsWith
from tickler.table.declaration import MISSING, Attribute
from tickler.table.definition import EntityDefinition
from tickler.table.engines.dynamodb.items import attribute_of, instant_text, is_stored, map_key
from tickler.table.engines.dynamodb.wire import default_of
from tickler.table.path_type import typed

_PLACEHOLDER = re.compile(r"[#:][nv]\d+")
MAX_OPERANDS = 100  # of an IN


class Expressions:
    """Collects the names and values of the expressions of one request."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Item = {}

    def name(self, name: str) -> str:
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def path(self, path: Path[Any, Any], length: int | None = None) -> str:
        """Return a path, or the first `length` steps of it."""
        steps = (path.attribute, *path.steps)[:length]
        return ".".join(self.name(step_name(step)) for step in steps)

    def fields(self, *texts: object) -> dict[str, object]:
        """Return the fields of the request for the names and values of some expressions. DynamoDB refuses any that are unused."""
        used = {placeholder for text in texts for placeholder in _PLACEHOLDER.findall(str(text))}
        names = {placeholder: name for name, placeholder in self._names.items() if placeholder in used}
        values = {placeholder: value for placeholder, value in self._values.items() if placeholder in used}
        fields = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
        return {name: field for name, field in fields.items() if field}

    def alive(self, definition: EntityDefinition, now_ms: int) -> str | None:
        """Return the condition that an item has not expired; None if it cannot."""
        if definition.expires is None:
            return None
        name = self.name(definition.expires.name)
        first_ms = datetime.fromtimestamp((now_ms + 1) / 1000, UTC)
        return f"(attribute_not_exists({name}) OR {name} >= {self.value({'S': instant_text(first_ms)})})"

    def unchanged(self, path: Path[Any, Any], raw: Item) -> str:
        """Return the condition that the value at a path is still that of `raw`, an item as DynamoDB stores it."""
        found = raw_at(path, raw)
        place = self.path(path)
        return f"attribute_not_exists({place})" if found is None else f"{place} = {self.value(found)}"

    def condition(self, condition: Condition[Any]) -> str:
        if isinstance(condition, And | Or):
            word = " AND " if isinstance(condition, And) else " OR "
            return grouped(word.join(self.condition(part) for part in condition.parts))
        if isinstance(condition, Not):
            return negated(self.condition(condition.part))
        assert isinstance(condition, Leaf)
        return self._leaf(condition)

    def _leaf(self, leaf: Leaf) -> str:
        """Return a leaf: for the value that is stored, or where none is, for the default that takes its place."""
        absences = [self._absent(leaf.path, length) for length, value in _defaults(leaf.path) if leaf.holds_for(value)]
        stored = self._stored(leaf)
        if not any(True for _ in _defaults(leaf.path)):
            return stored or self._never(leaf.path)
        if stored is not None:
            present = f"attribute_exists({self.path(leaf.path)})"
            absences.append(f"({present} AND {stored})" if leaf.holds_for(MISSING) else stored)
        return grouped(" OR ".join(absences)) if absences else self._never(leaf.path)

    def _absent(self, path: Path[Any, Any], length: int) -> str:
        absent = f"attribute_not_exists({self.path(path, length)})"
        if length == 1:
            return absent
        return f"(attribute_type({self.path(path, length - 1)}, {self.value({'S': 'M'})}) AND {absent})"

    def _never(self, path: Path[Any, Any]) -> str:
        name = self.name(path.attribute.name)
        return f"(attribute_exists({name}) AND attribute_not_exists({name}))"

    def _stored(self, leaf: Leaf) -> str | None:
        """Return a leaf for the value that is stored, None if it is false for each."""
        place = self.path(leaf.path)
        if isinstance(leaf, Compare):
            if not is_stored(leaf.value):
                return None if leaf.operator == "=" else f"attribute_exists({place})"
            return f"{place} {leaf.operator} {self.value(operand(leaf.path, leaf.value))}"
        if isinstance(leaf, OneOf):
            return self._one_of(leaf, place)
        if isinstance(leaf, Exists):
            return f"attribute_exists({place})"
        if isinstance(leaf, StartsWith):
            if not leaf.value:
                return f"attribute_type({place}, {self.value({'S': 'S'})})"
            return f"begins_with({place}, {self.value(attribute_of(leaf.value))})"
        assert isinstance(leaf, Contains)
        return f"contains({place}, {self.value(attribute_of(leaf.value))})"

    def _one_of(self, leaf: OneOf, place: str) -> str | None:
        values = [self.value(operand(leaf.path, value)) for value in leaf.values if is_stored(value)]
        lists = [", ".join(values[start : start + MAX_OPERANDS]) for start in range(0, len(values), MAX_OPERANDS)]
        return grouped(" OR ".join(f"{place} IN ({each})" for each in lists)) if lists else None


def operand(path: Path[Any, Any], value: object) -> Value:
    """Return a value for a path, in the type that is declared there."""
    return attribute_of(typed(path, value))


def step_name(step: object) -> str:
    return step.name if isinstance(step, Attribute) else map_key(step)


def raw_at(path: Path[Any, Any], raw: Item) -> Value | None:
    """Return what is stored at a path, None if nothing is."""
    found: Any = {"M": raw}
    for step in (path.attribute, *path.steps):
        found = found.get("M", {}).get(step_name(step)) if found is not None else None
    return None if found is None else dict(found)


def grouped(text: str) -> str:
    """Return an expression in parentheses, unless it has them: DynamoDB refuses a second pair."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text if position == len(text) - 1 and position > 0 else f"({text})"
    return text


def negated(text: str) -> str:
    return f"(NOT {grouped(text)})"


def all_of(parts: Sequence[str | None]) -> str:
    """Return the conjunction of the conditions that there are."""
    return " AND ".join(part for part in parts if part is not None)


def _defaults(path: Path[Any, Any]) -> Iterator[tuple[int, object]]:
    """Yield the value at a path where its first `length` steps lead to nothing, for each length at which it is not MISSING."""
    steps = (path.attribute, *path.steps)
    for length, step in enumerate(steps, 1):
        value: Any = default_of(step) if isinstance(step, Attribute) else MISSING
        for rest in steps[length:]:
            if value in (None, MISSING, msgspec.NODEFAULT):
                value = MISSING
                break
            value = getattr(value, rest.name) if isinstance(rest, Attribute) else value.get(rest, MISSING)
        if value is not MISSING and value is not msgspec.NODEFAULT:
            yield length, value
