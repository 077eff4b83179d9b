"""PartiQL writes of one item, each done only if its condition holds. To delete what is not there succeeds, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.codec import Attribute, Item

_RETURNING = " RETURNING ALL OLD *"

Condition = Mapping[str, Attribute | None]  # None: the attribute must be missing


class Statement(NamedTuple):
    """The text with its question marks, and what stands for them."""

    text: str
    parameters: list[Attribute]


def insert(table: str, item: Item) -> Statement:
    """Fails with `DuplicateItem` if there is one."""
    fields = ", ".join(f"'{name}': ?" for name in item)
    return Statement(f'INSERT INTO "{table}" VALUE {{{fields}}}', list(item.values()))


def update(
    table: str, key: Item, values: Item, condition: Condition, remove: Sequence[str] = (), *, old: bool = False
) -> Statement:
    """With `old`, the outcome has the item as it was."""
    sets = "".join(f' SET "{name}" = ?' for name in values)
    removes = "".join(f' REMOVE "{name}"' for name in remove)
    where, parameters = _where(key, condition)
    return Statement(f'UPDATE "{table}"{sets}{removes} WHERE {where}{_RETURNING if old else ""}', [*values.values(), *parameters])


def delete(table: str, key: Item, condition: Condition, *, old: bool = False) -> Statement:
    """With `old`, the outcome has the item as it was, if there was one. Transactions do not take that."""
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
