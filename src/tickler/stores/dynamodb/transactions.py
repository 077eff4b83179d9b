"""Several writes that are done together or not at all; a single one goes with others in a batch, which costs half."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from tickler.dynamo import Condition, Item, Outcome, Statement, TransactionCancelled, execute_many, statements
from tickler.dynamo.batches import in_turns
from tickler.dynamo.client import pause
from tickler.dynamo.failures import worth_another_try
from tickler.errors import StoreUnavailable
from tickler.stores.dynamodb.table import LOST, TRIES, Table

MAX_TRANSACTION_ITEMS = 100


class Insert(NamedTuple):
    """Of an item that is not there yet, or, with `over`, is there with the same in it."""

    item: Item
    over: bool = False

    def statement(self, table: str) -> Statement:
        return statements.insert(table, self.item)

    def part(self, table: str) -> dict[str, object]:
        condition = {} if self.over else {"ConditionExpression": "attribute_not_exists(pk)"}
        return {"Put": {"TableName": table, "Item": self.item, **condition}}


class Update(NamedTuple):
    """Of an item that is there."""

    key: Item
    values: Item
    condition: Condition
    removed: Sequence[str] = ()

    def statement(self, table: str) -> Statement:
        return statements.update(table, self.key, self.values, self.condition, self.removed)

    def part(self, table: str) -> dict[str, object]:
        names = _Names()
        changes = []
        if self.values:
            sets = (f"{names.name(name)} = {names.value(value)}" for name, value in self.values.items())
            changes.append(f"SET {', '.join(sets)}")
        if self.removed:
            changes.append(f"REMOVE {', '.join(map(names.name, self.removed))}")
        holds = ["attribute_exists(pk)", *names.condition(self.condition)]
        expressions = {"UpdateExpression": " ".join(changes), "ConditionExpression": " AND ".join(holds)}
        return {"Update": {"TableName": table, "Key": self.key, **expressions, **names.request()}}


class Delete(NamedTuple):
    """Of an item, if it is as `condition` says. With none, or alone, what is gone may be deleted, too."""

    key: Item
    condition: Condition

    def statement(self, table: str) -> Statement:
        return statements.delete(table, self.key, self.condition)

    def part(self, table: str) -> dict[str, object]:
        names = _Names()
        request: dict[str, object] = {"TableName": table, "Key": self.key}
        if self.condition:
            request["ConditionExpression"] = " AND ".join(names.condition(self.condition))
        return {"Delete": request | names.request()}


Write = Insert | Update | Delete


class _Names:
    """The names and values of an expression, which stand outside of it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Item = {}

    def name(self, name: str) -> str:
        self._names[f"#{name}"] = name
        return f"#{name}"

    def value(self, value: dict[str, Any]) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def condition(self, condition: Condition) -> list[str]:
        return [
            f"attribute_not_exists({self.name(name)})" if value is None else f"{self.name(name)} = {self.value(value)}"
            for name, value in condition.items()
        ]

    def request(self) -> dict[str, object]:
        """What an expression needs beside it. DynamoDB takes no empty ones."""
        fields = {"ExpressionAttributeNames": self._names, "ExpressionAttributeValues": self._values}
        return {name: field for name, field in fields.items() if field}


async def write_all(table: Table, plans: Sequence[Sequence[Write]]) -> list[Outcome | Exception]:
    """Write each plan whole or not at all, on its own; the plans of one write in batches. What came of each, in order."""
    outcomes: list[Outcome | Exception | None] = [None] * len(plans)
    single = [n for n, plan in enumerate(plans) if len(plan) == 1]
    several = [n for n, plan in enumerate(plans) if len(plan) > 1]
    done = await execute_many(table.client, [plans[n][0].statement(table.name) for n in single])
    done += await in_turns([plans[n] for n in several], lambda plan: _outcome(table, plan))
    for n, outcome in zip([*single, *several], done, strict=True):
        outcomes[n] = outcome
    return [Outcome(None, None) if outcome is None else outcome for outcome in outcomes]


async def write_together(table: Table, writes: Sequence[Write]) -> list[Write]:
    """Those whose condition did not hold, in which case nothing was written; none when all was.

    A transaction in the way of another one is tried again. Its token is the same for every attempt, so that what was done, and
    the answer lost, is not done twice.
    """
    request = {"TransactItems": [write.part(table.name) for write in writes], "ClientRequestToken": secrets.token_urlsafe(16)}
    for attempt in range(1, TRIES + 1):
        try:
            await table.client.call("TransactWriteItems", request)
        except TransactionCancelled as cancelled:
            codes = [code for code, _ in cancelled.reasons]
            lost = [write for write, code in zip(writes, codes, strict=False) if code in LOST]
            if lost:
                return lost
            if not all(code is None or worth_another_try(code) for code in codes):
                raise StoreUnavailable(f"{table.label}: {cancelled}") from cancelled
            await pause(attempt)
        else:
            return []
    raise StoreUnavailable(f"{table.label}: the same items were written by others {TRIES} times in a row: try again")


async def _outcome(table: Table, plan: Sequence[Write]) -> Outcome:
    lost = await write_together(table, plan)
    return Outcome("ConditionalCheckFailed" if lost else None, None)
