"""Explains a write before it happens: what it sets and removes on DynamoDB, whether it reads first, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tickler.table.engines.dynamodb.changes import has_expression
from tickler.table.engines.dynamodb.items import item_of
from tickler.table.operation import Check, Operation, Put, Update, decide
from tickler.table.planner import Plan, plan
from tickler.table.units import all_units, read_units


class Explanation(msgspec.Struct, frozen=True):
    """What an operation does to an item. Write units are by `table` and the name of each index.

    `check_units` are the read units of a check, which a transaction reads once more when it commits.
    """

    operation: str
    sets: tuple[str, ...]
    removes: tuple[str, ...]
    reads_first: bool
    write_units: Mapping[str, int]
    read_units: float
    check_units: float = 0

    @property
    def total(self) -> int:
        """The write units of the table and all its indexes."""
        return sum(self.write_units.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {units}" for name, units in self.write_units.items() if units)
        reads = f"the item first, {_units(self.read_units)}" if self.reads_first else "nothing first"
        reads += f", and again at commit, {_units(self.check_units)}" if self.check_units else ""
        return "\n".join(
            [
                self.operation,
                f"  sets     {', '.join(self.sets) or 'nothing'}",
                f"  removes  {', '.join(self.removes) or 'nothing'}",
                f"  reads    {reads}",
                f"  writes   {_units(self.total)}: {parts}" if parts else "  writes   nothing",
            ]
        )


def explain_all(operations: Sequence[Operation], found: Sequence[Any]) -> list[Explanation]:
    """Explain operations that are written together. A single check is a transaction on DynamoDB, too."""
    transaction = len(operations) > 1 or any(isinstance(operation, Check) for operation in operations)
    return [explain(one, current, transaction=transaction) for one, current in zip(operations, found, strict=True)]


def explain(operation: Operation, current: Any, planned: Plan | None = None, *, transaction: bool = False) -> Explanation:
    """Explain an operation on the current item, None if there is none. Raises what `decide` raises.

    `planned` is the plan of an update, if it was made already. A transaction first reads the items that it does not put.
    """
    definition = operation.id.definition
    after = decide(operation, current)
    old, new = (None if each is None else item_of(definition, each) for each in (current, after))
    before, left = old or {}, new or {}
    reads = _reads_first(operation, planned, transaction)
    checks = isinstance(operation, Check)
    return Explanation(
        f"{type(operation).__name__.lower()} {operation.id!r}",
        tuple(sorted(name for name, value in left.items() if before.get(name) != value)),
        tuple(sorted(before.keys() - left.keys())),
        reads,
        dict.fromkeys(["table", *definition.gsis], 0)
        if checks
        else all_units(definition.gsis, old, new, transaction=transaction),
        read_units(old) if reads else 0,
        2 * read_units(old) if checks else 0,
    )


def _reads_first(operation: Operation, planned: Plan | None, transaction: bool) -> bool:
    if transaction:
        return not isinstance(operation, Put)
    if not isinstance(operation, Update):
        return False
    return (planned or plan(operation)).reads or not all(map(has_expression, operation.changes))


def _units(number: float) -> str:
    return f"{number:g} unit{'' if number == 1 else 's'}"
