"""Says conditions in words: `status is 'pending' and reports is more than 2`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from tickler.table.attribute import Path
from tickler.table.attribute_type import alternatives_of
from tickler.table.condition import And, Compare, Condition, Contains, Exists, Leaf, Not, OneOf, Or, StartsWith, kind_of
from tickler.table.declaration import Attribute
from tickler.table.disjoint import implies
from tickler.table.key import Index
from tickler.table.path_type import can_be_missing, type_at

_COMPARED = {"=": "is", "<>": "is not", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}
_COMPARED_IN_TIME = {"<": "is before", "<=": "is at or before", ">": "is after", ">=": "is at or after"}
_NEGATED = {"is": "is not", "is not": "is", "starts with": "does not start with", "contains": "does not contain"}


def membership_text(index: Index[Any, Any]) -> str | None:
    """Say while what an item is in an index; None if that is always."""
    missing = [path.exists() for path in optional_paths(index)]
    told = [each for each in missing if index.when is None or not implies(index.when, each)]
    parts = [*([] if index.when is None else [index.when]), *told]
    return condition_text(And(parts)) if parts else None


def optional_paths(index: Index[Any, Any]) -> list[Path[Any, Any]]:
    """Return the paths in the key of an index at which there may be nothing, each once."""
    paths = [part.path for template in (index.pk, index.sk) for part in template.parts]
    return list({path_text(path): path for path in paths if can_be_absent(path)}.values())


def can_be_absent(path: Path[Any, Any]) -> bool:
    """Tell whether an item can lack what a path leads to: there is no attribute, no such entry, or None on the way."""
    for number in range(len(path.steps) + 1):
        before = Path[Any, Any](path.attribute, path.steps[:number])
        if can_be_missing(before) or (number < len(path.steps) and type(None) in alternatives_of(type_at(before))):
            return True
    return False


def condition_text(condition: Condition[Any]) -> str:
    if isinstance(condition, And):
        return " and ".join(_grouped(part, Or) for part in _flat(condition))
    if isinstance(condition, Or):
        return " or ".join(_grouped(part, And) for part in _flat(condition))
    if isinstance(condition, Not):
        part = condition.part
        return _leaf_text(part, negated=True) if isinstance(part, Leaf) else f"not ({condition_text(part)})"
    assert isinstance(condition, Leaf)
    return _leaf_text(condition, negated=False)


def path_text(path: Path[Any, Any]) -> str:
    """Return a path as in `address.city`, or `prices[…]` for an entry of a map."""
    steps = [f".{step.name}" if isinstance(step, Attribute) else f"[{value_text(step)}]" for step in path.steps]
    return f"{path.attribute.name}{''.join(steps)}"


def value_text(value: object) -> str:
    if isinstance(value, Enum):
        return value_text(value.value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    return value.isoformat() if isinstance(value, date) else repr(value)


def list_text(texts: Sequence[str], word: str = "and") -> str:
    """Return `a, b and c`."""
    *others, last = texts
    return f"{', '.join(others)} {word} {last}" if others else last


def _flat(condition: And | Or) -> Iterator[Condition[Any]]:
    for part in condition.parts:
        if type(part) is type(condition) and isinstance(part, And | Or):
            yield from _flat(part)
        else:
            yield part


def _grouped(part: Condition[Any], other: type) -> str:
    return f"({condition_text(part)})" if isinstance(part, other) else condition_text(part)


def _leaf_text(leaf: Leaf, *, negated: bool) -> str:
    path = path_text(leaf.path)
    verb, value = _predicate(leaf)
    if isinstance(leaf, Exists):
        return f"{path} is {'missing' if negated else 'present'}"
    if negated:
        verb = _NEGATED.get(verb, verb.replace("is ", "is not ", 1))
    return f"{path} {verb} {value}"


def _predicate(leaf: Leaf) -> tuple[str, str]:
    if isinstance(leaf, Compare):
        in_time = kind_of(leaf.value) in ("instant", "date")
        verbs = {**_COMPARED, **_COMPARED_IN_TIME} if in_time else _COMPARED
        return verbs[leaf.operator], value_text(leaf.value)
    if isinstance(leaf, OneOf):
        return "is", list_text([value_text(value) for value in leaf.values], "or")
    if isinstance(leaf, StartsWith | Contains):
        return "starts with" if isinstance(leaf, StartsWith) else "contains", value_text(leaf.value)
    return "is", "present"
