"""Writes expressions of the toolkit as Python, so that they can be pasted: keys, conditions, values, and types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import Enum
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from tickler.table.attribute import Path
from tickler.table.attribute_type import alternatives_of, plain_type
from tickler.table.condition import And, Compare, Condition, Contains, Exists, Leaf, Not, OneOf, Or, StartsWith, text_of
from tickler.table.declaration import Attribute, Missing
from tickler.table.key import Index
from tickler.table.template import KeyPart, Template

_OPERATORS = {"=": "==", "<>": "!="}


def path_source(path: Path[Any, Any], owner: str) -> str:
    """Write a path: `Order.address[Address.city]`, or without an owner as in the body of the class."""
    steps = [repr(step) if isinstance(step, Attribute) else value_source(step) for step in path.steps]
    return f"{owner}{'.' if owner else ''}{path.attribute.name}{''.join(f'[{step}]' for step in steps)}"


def template_source(template: Template[*tuple[Any, ...]]) -> str:
    """Write one half of a key as in the body of the class: `"ORDER" / placed_at / id`."""
    return " / ".join(_component(component) for component in template.components)


def index_source(index: Index[Any, Any], name: str, partition: str | None = None) -> str:
    """Write the declaration of an index; `partition` replaces the template of its partition key."""
    halves = [partition or template_source(index.pk), template_source(index.sk)]
    when = "" if index.when is None else f", when={condition_source(index.when, '')}"
    return f'{name} = Index("{index.gsi}", {", ".join(halves)}{when})'


def condition_source(condition: Condition[Any], owner: str) -> str:
    """Write a condition with the brackets that `&` and `|` need."""
    if isinstance(condition, And | Or):
        sign = " & " if isinstance(condition, And) else " | "
        return sign.join(_bracketed(part, owner) for part in condition.parts)
    if isinstance(condition, Not):
        if isinstance(condition.part, Exists):
            return f"{path_source(condition.part.path, owner)}.missing()"
        return f"~{_bracketed(condition.part, owner)}"
    assert isinstance(condition, Leaf)
    return _leaf(condition, owner)


def value_source(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, set | frozenset) and not value:
        return f"{type(value).__name__}()"
    if isinstance(value, datetime):
        at = value.astimezone(UTC)
        numbers = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond]
        while len(numbers) > 3 and not numbers[-1]:
            numbers.pop()
        return f"datetime({', '.join(map(str, numbers))}, tzinfo=UTC)"
    if isinstance(value, date):
        return f"date({value.year}, {value.month}, {value.day})"
    if isinstance(value, str) and "'" not in repr(value)[1:-1] and '"' not in value:
        return f'"{repr(value)[1:-1]}"'
    return text_of(value)


def type_source(kind: Any) -> str:
    """Write a type without `Missing`, the values of a `Literal` as alternatives, and names without their modules."""
    return " | ".join(_type(each) for each in alternatives_of(kind) if each is not Missing)


def _type(kind: Any) -> str:
    plain = plain_type(kind)
    if plain is NoneType:
        return "None"
    if get_origin(plain) is Literal:
        return " | ".join(map(repr, get_args(plain)))
    if get_origin(plain) is not None:
        return f"{get_origin(plain).__name__}[{', '.join(type_source(each) for each in get_args(plain))}]"
    return str(getattr(plain, "__name__", plain))


def _component(component: str | KeyPart) -> str:
    if isinstance(component, str):
        return value_source(component)
    return f"{path_source(component.path, '')}{'.descending()' if component.descending else ''}"


def _bracketed(part: Condition[Any], owner: str) -> str:
    text = condition_source(part, owner)
    is_call = isinstance(part, Leaf) and not isinstance(part, Compare)
    return text if is_call or isinstance(part, Not) else f"({text})"


def _leaf(leaf: Leaf, owner: str) -> str:
    path = path_source(leaf.path, owner)
    if isinstance(leaf, Compare):
        return f"{path} {_OPERATORS.get(leaf.operator, leaf.operator)} {value_source(leaf.value)}"
    calls: dict[type[Leaf], Callable[[Any], str]] = {
        Exists: lambda _: "exists()",
        OneOf: lambda each: f"one_of([{', '.join(map(value_source, each.values))}])",
        StartsWith: lambda each: f"starts_with({value_source(each.value)})",
        Contains: lambda each: f"contains({value_source(each.value)})",
    }
    return f"{path}.{calls[type(leaf)](leaf)}"
