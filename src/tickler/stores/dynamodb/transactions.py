"""Writes that succeed or fail together. A single write joins a batch instead, which costs half."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from tickler.dynamo import statements
from tickler.dynamo.batches import Outcome, execute_many, run_concurrently
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import TransactionCancelled, is_retryable
from tickler.dynamo.statements import Condition, Statement
from tickler.errors import StoreUnavailable
from tickler.stores.dynamodb.table import LOST, TRIES, Table


class Insert(NamedTuple):
    """Inserts an item that does not exist, or, with `over`, may exist with the same content."""

    item: Item
    over: bool = False

    def statement(self, table: str) -> Statement:
        return statements.insert(table, self.item)

    def part(self, table: str) -> dict[str, object]:
        condition = {} if self.over else {"ConditionExpression": "attribute_not_exists(pk)"}
        return {"Put": {"TableName": table, "Item": self.item, **condition}}


class Update(NamedTuple):
    """Updates an existing item."""

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
    """Deletes an item if `condition` holds. Without a condition, or outside a transaction, a missing item is fine."""

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
    """Collects the names and values of an expression, which a request passes beside it."""

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
        """Return the fields for names and values. DynamoDB refuses empty ones."""
        fields = {"ExpressionAttributeNames": self._names, "ExpressionAttributeValues": self._values}
        return {name: field for name, field in fields.items() if field}


async def write_all(table: Table, plans: Sequence[Sequence[Write]]) -> list[Outcome | Exception]:
    """Write each plan atomically, plans of one write in batches. Returns the outcome of each plan, in order."""
    outcomes: list[Outcome | Exception | None] = [None] * len(plans)
    single = [n for n, plan in enumerate(plans) if len(plan) == 1]
    several = [n for n, plan in enumerate(plans) if len(plan) > 1]
    done = await execute_many(table.client, [plans[n][0].statement(table.name) for n in single])
    done += await run_concurrently([plans[n] for n in several], lambda plan: _outcome(table, plan))
    for n, outcome in zip([*single, *several], done, strict=True):
        outcomes[n] = outcome
    return [Outcome(None, None) if outcome is None else outcome for outcome in outcomes]


async def write_transaction(table: Table, writes: Sequence[Write]) -> list[Write]:
    """Write all or nothing. Returns the writes whose condition failed; an empty list if all were written.

    Retries a transaction that conflicts with another. Every attempt has the same token, so that a transaction whose response
    was lost is not done twice.
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
            if not all(code is None or is_retryable(code) for code in codes):
                raise StoreUnavailable(f"{table.label}: {cancelled}") from cancelled
            await pause(attempt)
        else:
            return []
    raise StoreUnavailable(f"{table.label}: others wrote the same items {TRIES} times in a row: try again")


async def _outcome(table: Table, plan: Sequence[Write]) -> Outcome:
    lost = await write_transaction(table, plan)
    return Outcome("ConditionalCheckFailed" if lost else None, None)
