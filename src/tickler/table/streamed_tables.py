"""Finds the tables with consumers in a database, whose programs this one need not know."""

from __future__ import annotations

from tickler.database.unit_of_work import Database
from tickler.table.definition import TableDefinition
from tickler.table.streams.status import ConsumerStatus, consumer_statuses
from tickler.table.table import engine_module


async def consumers_in(database: Database, now_ms: int) -> list[ConsumerStatus]:
    """Return the consumers of all tables in a database. DynamoDB does not tell which of its tables are ours: none there."""
    module = engine_module(database)
    if module is None:
        return []
    found: list[ConsumerStatus] = []
    for name in await module.streamed_tables(database):
        engine = module.shared_engine(TableDefinition(name, stream=True), database, name)
        found += await consumer_statuses(engine, name, now_ms)
    return found
