"""The update expression of an update: what it sets, removes, adds to and deletes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import NODEFAULT

from tickler.dynamo.codec import Attribute as Value
from tickler.dynamo.codec import Item
from tickler.table.attribute import Path
from tickler.table.change import Add, AddMembers, Append, Change, Remove, RemoveMembers, Set
from tickler.table.condition import UNKNOWN
from tickler.table.declaration import MISSING, Attribute
from tickler.table.definition import EntityDefinition
from tickler.table.engines.dynamodb.expressions import Expressions, operand, raw_at
from tickler.table.engines.dynamodb.items import TTL, attribute_of, is_stored, ttl_of
from tickler.table.engines.dynamodb.wire import default_of
from tickler.table.planner import Knowledge, SlotPlan
from tickler.table.rendering import value_at


class Clauses:
    """Collects the clauses of one update expression."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._clauses: dict[str, list[str]] = {"SET": [], "REMOVE": [], "ADD": [], "DELETE": []}

    def text(self) -> str:
        return " ".join(f"{word} {', '.join(each)}" for word, each in self._clauses.items() if each)

    def keys(self, slots: Mapping[str, SlotPlan]) -> None:
        """Write or remove both halves of each key."""
        for gsi, slot in slots.items():
            names = [self._expressions.name(f"{gsi}{half}") for half in ("pk", "sk")]
            if slot.key is not None:
                self._clauses["SET"] += [
                    f"{name} = {self._expressions.value({'S': text})}" for name, text in zip(names, slot.key, strict=True)
                ]
            elif slot.action == "remove":
                self._clauses["REMOVE"] += names

    def put(self, place: str, value: object) -> None:
        if is_stored(value):
            self._clauses["SET"].append(f"{place} = {self._expressions.value(attribute_of(value))}")
        else:
            self._clauses["REMOVE"].append(place)

    def put_if_absent(self, name: str, value: Value) -> None:
        place = self._expressions.name(name)
        self._clauses["SET"].append(f"{place} = if_not_exists({place}, {self._expressions.value(value)})")

    def expiry(self, definition: EntityDefinition, changes: Sequence[Change[Any]]) -> None:
        """Keep the attribute by which DynamoDB deletes an item in step with the one that says when."""
        for change in changes:
            if change.path.attribute is not definition.expires:
                continue
            self.expire_at(operand_instant_ms(change) if isinstance(change, Set) else None)

    def expire_at(self, expires_at_ms: int | None) -> None:
        """Write or remove the attribute by which DynamoDB deletes an item."""
        place = self._expressions.name(TTL)
        if expires_at_ms is None:
            self._clauses["REMOVE"].append(place)
        else:
            self._clauses["SET"].append(f"{place} = {self._expressions.value(ttl_of(expires_at_ms))}")

    def change(self, change: Change[Any], knowledge: Knowledge) -> None:
        """Write a change that needs no read."""
        place = self._expressions.path(change.path)
        value = self._expressions.value
        after = knowledge.after(change.path)
        if isinstance(change, Set):
            if is_stored(change.value):
                self._clauses["SET"].append(f"{place} = {value(operand(change.path, change.value))}")
            else:
                self._clauses["REMOVE"].append(place)
        elif isinstance(change, Remove):
            self._clauses["REMOVE"].append(place)
        elif after is not UNKNOWN:
            self.put(place, after)  # what the keys were computed from, to the last digit
        elif isinstance(change, Add):
            start = default_at(change.path)
            first = value(attribute_of(0 if start is MISSING else start))
            self._clauses["SET"].append(
                f"{place} = if_not_exists({place}, {first}) + {value(operand(change.path, change.value))}"
            )
        elif isinstance(change, Append):
            start = default_at(change.path)
            first = value(attribute_of([] if start is MISSING else start))
            added = value(operand(change.path, list(change.values)))
            self._clauses["SET"].append(f"{place} = list_append(if_not_exists({place}, {first}), {added})")
        else:
            assert isinstance(change, AddMembers | RemoveMembers)
            word = "ADD" if isinstance(change, AddMembers) else "DELETE"
            self._clauses[word].append(f"{place} {value(operand(change.path, change.members))}")


def has_expression(change: Change[Any]) -> bool:
    """Tell whether DynamoDB can do a change by itself. ADD and DELETE of members take no path within an attribute."""
    return not (isinstance(change, AddMembers | RemoveMembers) and change.path.steps)


def set_as_whole(change: Change[Any], raw: Item, changed: Any) -> tuple[Path[Any, Any], object] | None:
    """Return the path to set and its value where a change that was read for cannot be left to DynamoDB; None where it can.

    It cannot if there is nothing at the place that the change is in, or if it is one of members within an attribute.
    """
    path = change.path
    for length in range(1, len(path.steps) + 1):
        above: Path[Any, Any] = Path(path.attribute, path.steps[: length - 1])
        if raw_at(above, raw) is None:
            return above, value_at(changed, above)
    return None if has_expression(change) else (path, value_at(changed, path))


def default_at(path: Path[Any, Any]) -> Any:
    """Return the value from which a change starts where there is none."""
    last = path.steps[-1] if path.steps else path.attribute
    default = default_of(last) if isinstance(last, Attribute) else MISSING
    return MISSING if default is NODEFAULT else default


def operand_instant_ms(change: Set) -> int:
    value: Any = change.value
    return int(value.timestamp() * 1000)
