"""Plausible values for the attributes of keys, so that a schema can show keys as the codec writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from tickler.table.attribute import Path
from tickler.table.attribute_type import alternatives_of, plain_type
from tickler.table.condition import Compare, Condition, OneOf, StartsWith
from tickler.table.declaration import Missing
from tickler.table.disjoint import Atom, cases
from tickler.table.key import Index, Key
from tickler.table.path_type import type_at
from tickler.table.schema.predicate_text import path_text
from tickler.table.template import Template

_OF_TYPE: dict[type, object] = {
    int: 7,
    float: 0.5,
    Decimal: Decimal("19.99"),
    datetime: datetime(2026, 3, 2, 12, tzinfo=UTC),
    date: date(2026, 3, 2),
    bytes: bytes.fromhex("0f1e"),
    UUID: UUID("6f1b5a3c-0d2e-4f7a-9b8c-1a2b3c4d5e6f"),
}
_WORDS = {"city": "Bonn", "country": "DE", "email": "ada@example.org", "language": "de", "name": "Ada"}
_STEPS: dict[type, Any] = {int: 1, float: 1.0, Decimal: 1, datetime: timedelta(hours=1), date: timedelta(days=1)}


def example_values(pair: Key[Any, Any, Any] | Index[Any, Any]) -> dict[str, object]:
    """Return a value for each attribute of a key, by its path. Those of an index satisfy its condition where that is simple."""
    atoms = _atoms(pair.when) if isinstance(pair, Index) and pair.when is not None else ()
    parts = [part for template in (pair.pk, pair.sk) for part in template.parts]
    return {path_text(part.path): _example(part.path, atoms) for part in parts}


def example_key(pair: Key[Any, Any, Any] | Index[Any, Any]) -> tuple[str, str]:
    values = example_values(pair)

    def filled(template: Template[*tuple[Any, ...]]) -> str:
        return template.fill([values[path_text(part.path)] for part in template.parts])

    return filled(pair.pk), filled(pair.sk)


def _atoms(condition: Condition[Any]) -> tuple[Atom, ...]:
    alternatives = cases(condition)
    return alternatives[0] if alternatives else ()


def _example(path: Path[Any, Any], atoms: tuple[Atom, ...]) -> object:
    own = [atom for atom in atoms if path_text(atom.condition.path) == path_text(path)]
    candidates = list(_candidates(path, own))
    return next((value for value in candidates if all(atom.may_hold_for(value) for atom in own)), candidates[0])


def _candidates(path: Path[Any, Any], atoms: list[Atom]) -> Iterator[object]:
    """Yield values of the path's type, the most telling first, and then those that its conditions name, and their neighbours."""
    (kind, *_) = [plain_type(each) for each in alternatives_of(type_at(path)) if each is not Missing]
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from kind
    else:
        yield _text(path) if kind is str else _OF_TYPE[kind]
    for atom in atoms:
        yield from _named(atom, kind)


def _named(atom: Atom, kind: Any) -> Iterator[object]:
    leaf = atom.condition
    if isinstance(leaf, OneOf):
        yield from leaf.values
    elif isinstance(leaf, StartsWith):
        yield f"{leaf.value}1"
    elif isinstance(leaf, Compare):
        yield leaf.value
        if kind in _STEPS:
            value: Any = leaf.value
            yield value + _STEPS[kind]
            yield value - _STEPS[kind]


def _text(path: Path[Any, Any]) -> str:
    """Return a text such as `c1` for a customer; for the id of an order `o1`, and its default if it has one."""
    default = path.attribute.default
    if not path.steps and isinstance(default, str) and default:
        return default
    name = path_text(path).rpartition(".")[2]
    if name in _WORDS:
        return _WORDS[name]
    if name == "id" and path.attribute.entity is not None:
        name = path.attribute.entity.__name__
    return f"{name.strip('_[]').lower()[:1] or 'x'}1"
