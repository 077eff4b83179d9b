"""Objects of the schema from what the table has: what an entity is missing is null."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

from tickler.table import MISSING

T = TypeVar("T")


def shown(type_: type[T], entity: object, **others: object) -> T:
    """Return an object of a type of the schema. It has the attributes of the entity under their names, but those in `others`."""
    values = {name: others[name] if name in others else getattr(entity, name) for name in _names(cast("Hashable", type_))}
    return type_(**{name: None if value is MISSING else value for name, value in values.items()})


@cache
def _names(type_: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(type_) if field.init)
