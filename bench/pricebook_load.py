"""pricebook: loading a catalogue through the table toolkit, beside raw inserts of the same rows into the same columns.

Indexes are made last on both sides. The ratio is that of processor time, of this process and of PostgreSQL; that of wall time
stands beside it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import asyncpg

from measure import Result, shared_folder
from postgres import PostgresServer
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import pricebook
from pricebook_store import (
    SCHEMA,
    Took,
    load_postgres,
    load_sqlite,
    postgres_server,
    remove,
    size,
    sqlite_path,
    timed,
)
from tickler.database.postgres.pool import Pool
from tickler.database.sqlite.connection import PRAGMAS
from tickler.table import progress_bar
from tickler.table.engines.postgres.engine import PostgresEngine
from tickler.table.engines.sql.layout import Layout
from tickler.table.engines.sqlite.engine import DIALECT

BARE = "pricebook_bare"
TARGET = 0.4
COMPARED = 1_000  # rows

Row = tuple[str, str, str, None, bytes, str, str, None, None]


async def run(say: Callable[[str], None]) -> list[Result]:
    catalogue = MadeCatalogue(size().stores, size().products)
    say(f"SQLite: loading {len(catalogue):,} prices, and raw inserts of the same")
    results = [await _on_sqlite(catalogue)]
    say(f"PostgreSQL: loading {len(catalogue):,} prices, and COPY of the same")
    with postgres_server() as server:
        results.append(await _on_postgres(catalogue, server))
    return results


async def _on_sqlite(catalogue: MadeCatalogue) -> Result:
    path = sqlite_path(size().stores)
    remove(path)
    ours = await load_sqlite(size().stores)
    bare = shared_folder() / "pricebook-bare.db"
    remove(bare)  # of a run that was interrupted
    theirs = await timed(lambda: insert_sqlite(catalogue, str(bare)))
    assert _some_rows(str(path)) == _some_rows(str(bare))
    remove(bare)
    return _result("SQLite", ours, theirs, "executemany")


async def _on_postgres(catalogue: MadeCatalogue, server: PostgresServer) -> Result:
    raw = await asyncpg.connect(server.dsn, command_timeout=600)
    try:
        for schema in (SCHEMA, BARE):
            await raw.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        ours = await load_postgres(server)
        await raw.execute(f"CREATE SCHEMA {BARE}")
        theirs = await timed(lambda: copy_postgres(catalogue, raw), server)
        of_each = "SELECT pk, sk, entity, body, gsi1pk, gsi1sk FROM {}.pricebook WHERE entity = 'Price' ORDER BY pk, sk LIMIT {}"
        rows = [await raw.fetch(of_each.format(schema, COMPARED)) for schema in (SCHEMA, BARE)]
        assert rows[0] == rows[1]
        await raw.execute(f"DROP SCHEMA {BARE} CASCADE")
    finally:
        await raw.close()
    return _result("PostgreSQL", ours, theirs, "COPY")


def _result(store: str, ours: Took, theirs: Took, how: str) -> Result:
    prices = size().prices
    wall = f"wall time {prices / ours.wall_s / 1e3:,.0f}k/s and {prices / theirs.wall_s / 1e3:,.0f}k/s"
    return Result(
        f"pricebook: {store}: a load of {prices:,} prices",
        f"{prices / ours.processor_s:,.0f}/s",
        f"{prices / theirs.processor_s:,.0f}/s",
        f"{how} of the same rows, processor time; {wall}, {theirs.wall_s / ours.wall_s:.2f}",
        theirs.processor_s / ours.processor_s,
        TARGET,
    )


def rows_by_hand(catalogue: MadeCatalogue) -> Iterator[Row]:
    """Render the rows as a program would that knows nothing of tables: nothing is made but their texts."""
    products = [catalogue.product(number) for number in range(catalogue.product_count)]
    with progress_bar("raw inserts") as on_progress:
        for number in range(catalogue.store_count):
            store = catalogue.store(number)
            pk, gsi1sk = f"STORE#{store}", f"ALL#STORE#{store}"
            for n, product in enumerate(products):
                amount = catalogue.amount(store, "ALL", n)
                body = (
                    f'{{"store":"{store}","channel":"ALL","type":"Base","product":"{product}",'
                    f'"values":{{"2026-01-01T00:00:00Z":{{"amount":{amount},"currency":"EUR"}}}}}}'
                )
                yield pk, f"ALL#Base#{product}#", "Price", None, body.encode(), f"TYPE#Base#{product}", gsi1sk, None, None
            on_progress("raw inserts", (number + 1) * len(products), len(catalogue))


async def insert_sqlite(catalogue: MadeCatalogue, path: str) -> None:
    layout = Layout(pricebook, DIALECT)
    raw = sqlite3.connect(path, isolation_level=None)
    for pragma in ("PRAGMA journal_mode = WAL", *PRAGMAS):
        raw.execute(pragma)
    raw.execute(layout.create_table())
    raw.execute("BEGIN")
    raw.executemany(layout.insert, rows_by_hand(catalogue))
    for index in (layout.unique_index(), *layout.secondary_indexes()):
        raw.execute(index.create)
    raw.execute("COMMIT")
    raw.close()


async def copy_postgres(catalogue: MadeCatalogue, raw: asyncpg.Connection) -> None:
    layout = PostgresEngine(pricebook, Pool("bare", BARE))._layout  # the same columns and indexes
    async with raw.transaction():
        await raw.execute(layout.create_table())
        await raw.copy_records_to_table(
            "pricebook", schema_name=BARE, columns=layout.columns, records=rows_by_hand(catalogue), timeout=600
        )
        for index in (layout.unique_index(), *layout.secondary_indexes()):
            await raw.execute(index.create)


def _some_rows(path: str) -> list[tuple[object, ...]]:
    columns = ", ".join(Layout(pricebook, DIALECT).columns)
    with closing(sqlite3.connect(path)) as raw:
        text = f"SELECT {columns} FROM pricebook WHERE entity = 'Price' ORDER BY pk, sk LIMIT {COMPARED}"
        return raw.execute(text).fetchall()
