"""PartiQL statements that write one item if a condition holds. Deleting a missing item succeeds, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.codec import Attribute, Item

_RETURNING = " RETURNING ALL OLD *"

Condition = Mapping[str, Attribute | None]  # None: the attribute must be missing


class Statement(NamedTuple):
    """PartiQL text with question marks, and the values for them."""

    text: str
    parameters: list[Attribute]


def insert(table: str, item: Item) -> Statement:
    """Insert an item. Fails with `DuplicateItem` if it exists."""
    fields = ", ".join(f"'{name}': ?" for name in item)
    return Statement(f'INSERT INTO "{table}" VALUE {{{fields}}}', list(item.values()))


def update(
    table: str, key: Item, values: Item, condition: Condition, remove: Sequence[str] = (), *, old: bool = False
) -> Statement:
    """Update an item. With `old`, the outcome has the item as it was before."""
    sets = "".join(f' SET "{name}" = ?' for name in values)
    removes = "".join(f' REMOVE "{name}"' for name in remove)
    where, parameters = _where(key, condition)
    return Statement(f'UPDATE "{table}"{sets}{removes} WHERE {where}{_RETURNING if old else ""}', [*values.values(), *parameters])


def delete(table: str, key: Item, condition: Condition, *, old: bool = False) -> Statement:
    """Delete an item. With `old`, which transactions do not accept, the outcome has the item as it was, if it existed."""
    where, parameters = _where(key, condition)
    return Statement(f'DELETE FROM "{table}" WHERE {where}{_RETURNING if old else ""}', parameters)


def _where(key: Item, condition: Condition) -> tuple[str, list[Attribute]]:
    clauses, parameters = [], []
    for name, value in [*key.items(), *condition.items()]:
        if value is None:
            clauses.append(f'"{name}" IS MISSING')
        else:
            clauses.append(f'"{name}" = ?')
            parameters.append(value)
    return " AND ".join(clauses), parameters
