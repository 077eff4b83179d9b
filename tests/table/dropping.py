"""Removes what tests leave on DynamoDB Local, which gets slower with each table that it has."""

from __future__ import annotations

from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.open_table import OpenTable


async def drop(db: OpenTable) -> None:
    """Delete the DynamoDB table of an open table; on other engines do nothing."""
    if isinstance(db.engine, DynamodbEngine):
        await db.engine.database.call("DeleteTable", {"TableName": db.engine._connection.name})
