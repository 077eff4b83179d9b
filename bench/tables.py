"""`tickler.table` beside bare drivers that read and write the same rows, and beside other toolkits of DynamoDB."""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import asyncpg
import msgspec
from boto3.dynamodb.types import TypeDeserializer

from measure import Result
from postgres import PostgresServer, bench_server
from tickler.database.sqlite.connection import PRAGMAS
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.engines.dynamodb.items import item_of
from tickler.table.engines.dynamodb.wire import EntityWire
from tickler.table.open_table import OpenTable

ITEMS = 100_000
LOADED = 1_000_000
CUSTOMERS = 100
PAGE = 64
PAGES = 50
PAIRS = 9
SPARSE = 200
FEW, MANY = 10_000, 5_000_000
DECODED = 100

shop = Table("shop")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Order(Entity, table=shop):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[Literal["pending", "confirmed", "shipped"]] = attr()
    placed_at: Attr[datetime] = attr()
    total_cents: Attr[int]
    city: Attr[str]
    email: Attr[str]
    note: Attr[str | None] = attr(default=None)
    paid: Attr[bool] = attr(default=False)
    tags: Attr[list[str]] = attr(default=[])

    key = Key("CUSTOMER" / customer, "ORDER" / id)
    pending = Index("gsi1", "PENDING_ORDER", placed_at / id, when=status == "pending")


def orders(number: int, pending: int = 0) -> Iterator[Order]:
    """Make orders of about 300 bytes. `pending` of them, spread evenly, are in the sparse index."""
    every = number // pending if pending else number + 1
    for n in range(number):
        yield Order(
            customer=f"c{n % CUSTOMERS}",
            id=f"o{n:09}",
            status="pending" if n % every == every - 1 else "shipped",
            placed_at=NOON + timedelta(seconds=n),
            total_cents=n,
            city="Kopenhagen",
            email=f"someone.{n}@example.org",
            note="leave it with the neighbours on the second floor, please",
            tags=["gift", "fragile"],
        )


def by_hand(order: Order) -> tuple[object, ...]:
    """Render the row as a program would that needs this entity alone."""
    pending = order.status == "pending"
    placed = f"{order.placed_at:%Y-%m-%dT%H:%M:%S}#{order.id}" if pending else None
    keys = ("PENDING_ORDER" if pending else None, placed)
    return f"CUSTOMER#{order.customer}", f"ORDER#{order.id}", "Order", None, msgspec.json.encode(order), *keys


async def run(say: Callable[[str], None]) -> list[Result]:
    return [*decoding(say), *await on_sqlite(say), *await on_postgres(say), *await sparse(say)]


async def processor(*works: Callable[[], Awaitable[object]]) -> list[float]:
    """Return the median processor seconds of each work, measured in turns."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(PAIRS):
        for work, measured in zip(works, seconds, strict=True):
            began = time.process_time()
            await work()
            measured.append(time.process_time() - began)
    return [statistics.median(each) for each in seconds]


def beside(name: str, ours: float, theirs: float, number: int, peer: str, target: float) -> Result:
    shown = (f"{ours / number * 1e6:,.1f} µs", f"{theirs / number * 1e6:,.1f} µs")
    return Result(name, *shown, f"{peer}, processor time", theirs / ours, target)


async def on_sqlite(say: Callable[[str], None]) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        say(f"SQLite: gets and pages of a table with {ITEMS:,} items")
        path = str(Path(folder, "reads.db"))
        decode_one, decode_list = msgspec.json.Decoder(Order).decode, msgspec.json.Decoder(list[Order]).decode
        async with shop.connect(f"sqlite:///{path}") as db:
            await db.load(orders(ITEMS))
            raw = sqlite3.connect(path, isolation_level=None)
            for pragma in PRAGMAS:
                raw.execute(pragma)
            ids = [Order.key.id(f"c{n % CUSTOMERS}", f"o{n:09}") for n in range(0, ITEMS, 100)]

            async def gets() -> None:
                for id in ids:
                    await db.get(id)

            async def bare_gets() -> None:
                for id in ids:
                    row = raw.execute(
                        "SELECT entity, expires_at, body FROM shop WHERE pk = ? AND sk = ?", (id.pk, id.sk)
                    ).fetchone()
                    decode_one(row[2])

            async def pages() -> None:
                for n in range(CUSTOMERS):
                    await db.query(Order.key(f"c{n}"), first=PAGE)

            async def bare_pages() -> None:
                text = "SELECT sk, body FROM shop WHERE pk = ? AND sk >= ? AND sk <= ? ORDER BY sk LIMIT ?"
                for n in range(CUSTOMERS):
                    rows = raw.execute(text, (f"CUSTOMER#c{n}", "ORDER#", "ORDER$", PAGE + 1)).fetchall()
                    decode_list(b"[" + b",".join(row[1] for row in rows) + b"]")

            get, bare_get, page, bare_page = await processor(gets, bare_gets, pages, bare_pages)
            raw.close()
        return [
            beside("SQLite table: get", get, bare_get, len(ids), "sqlite3 and msgspec", 0.5),
            beside(f"SQLite table: a page of {PAGE}", page, bare_page, CUSTOMERS, "sqlite3 and msgspec", 0.5),
            await sqlite_load(say, folder),
        ]


async def sqlite_load(say: Callable[[str], None], folder: str) -> Result:
    say(f"SQLite: a load of {LOADED:,} items")
    seconds: list[tuple[float, float]] = []
    for attempt in range(2):
        began = time.process_time()
        async with shop.connect(f"sqlite:///{folder}/load{attempt}.db") as db:
            await db.load(orders(LOADED, pending=SPARSE))
        ours = time.process_time() - began
        began = time.process_time()
        raw = sqlite3.connect(f"{folder}/bare{attempt}.db", isolation_level=None)
        for pragma in ("PRAGMA journal_mode = WAL", *PRAGMAS):
            raw.execute(pragma)
        raw.execute("CREATE TABLE shop (id INTEGER PRIMARY KEY, pk, sk, entity, expires_at, gsi1pk, gsi1sk, body)")
        raw.execute("BEGIN")
        insert = "INSERT INTO shop (pk, sk, entity, expires_at, body, gsi1pk, gsi1sk) VALUES (?, ?, ?, ?, ?, ?, ?)"
        raw.executemany(insert, map(by_hand, orders(LOADED, pending=SPARSE)))
        raw.execute("CREATE UNIQUE INDEX key ON shop (pk, sk)")
        raw.execute("CREATE INDEX gsi1 ON shop (gsi1pk, gsi1sk) WHERE gsi1pk IS NOT NULL")
        raw.execute("COMMIT")
        raw.close()
        seconds.append((ours, time.process_time() - began))
    ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
    return beside(f"SQLite table: load of {LOADED:,}", ours, theirs, LOADED, "executemany of the same rows", 0.5)


async def on_postgres(say: Callable[[str], None]) -> list[Result]:
    say(f"PostgreSQL: gets and pages of a table with {ITEMS:,} items")
    decode_one, decode_list = msgspec.json.Decoder(Order).decode, msgspec.json.Decoder(list[Order]).decode
    with bench_server() as server:
        async with shop.connect(server.url("bench")) as db:
            await db.load(orders(ITEMS))
            raw = await bare_postgres(server, "bench")
            ids = [Order.key.id(f"c{n % CUSTOMERS}", f"o{n:09}") for n in range(0, ITEMS, 200)]

            async def gets() -> None:
                for id in ids:
                    await db.get(id)

            async def bare_gets() -> None:
                for id in ids:
                    row = await raw.fetchrow("SELECT entity, expires_at, body FROM shop WHERE pk = $1 AND sk = $2", id.pk, id.sk)
                    assert row is not None
                    decode_one(row[2])

            async def pages() -> None:
                for n in range(CUSTOMERS):
                    await db.query(Order.key(f"c{n}"), first=PAGE)

            async def bare_pages() -> None:
                text = "SELECT sk, body FROM shop WHERE pk = $1 AND sk >= $2 AND sk <= $3 ORDER BY sk LIMIT $4"
                for n in range(CUSTOMERS):
                    rows = await raw.fetch(text, f"CUSTOMER#c{n}", "ORDER#", "ORDER$", PAGE + 1)
                    decode_list(b"[" + b",".join(row[1] for row in rows) + b"]")

            get, bare_get, page, bare_page = await processor(gets, bare_gets, pages, bare_pages)
            await raw.close()
        return [
            beside("PostgreSQL table: get", get, bare_get, len(ids), "asyncpg and msgspec", 0.5),
            beside(f"PostgreSQL table: a page of {PAGE}", page, bare_page, CUSTOMERS, "asyncpg and msgspec", 0.5),
            await postgres_load(say, server),
        ]


async def bare_postgres(server: PostgresServer, schema: str) -> asyncpg.Connection:
    raw = await asyncpg.connect(server.url(schema).partition("&schema=")[0].partition("?schema=")[0])
    await raw.execute(f"SET search_path = {schema}")
    return raw


async def postgres_load(say: Callable[[str], None], server: PostgresServer) -> Result:
    """Measure the time of this process, without that of the server, which writes an id and an index on it more for us."""
    say(f"PostgreSQL: a load of {LOADED:,} items")
    seconds: list[tuple[float, float]] = []
    for attempt in range(2):
        began = time.process_time()
        async with shop.connect(server.url(f"load{attempt}")) as db:
            await db.load(orders(LOADED, pending=SPARSE))
        ours = time.process_time() - began
        began = time.process_time()
        raw = await bare_postgres(server, f"load{attempt}")
        text = 'text COLLATE "C"'
        await raw.execute(
            f"""
            CREATE TABLE bare (
                pk {text}, sk {text}, entity {text}, expires_at bigint, body bytea, gsi1pk {text}, gsi1sk {text}
            )
            """
        )
        await raw.copy_records_to_table(
            "bare", schema_name=f"load{attempt}", records=map(by_hand, orders(LOADED, pending=SPARSE)), timeout=600
        )
        await raw.execute("CREATE UNIQUE INDEX ON bare (pk, sk)")
        await raw.execute("CREATE INDEX ON bare (gsi1pk, gsi1sk) WHERE gsi1pk IS NOT NULL")
        seconds.append((ours, time.process_time() - began))
        await raw.execute(f"DROP SCHEMA load{attempt} CASCADE")
        await raw.close()
    ours, theirs = (statistics.median(each) for each in zip(*seconds, strict=True))
    return beside(f"PostgreSQL table: load of {LOADED:,}", ours, theirs, LOADED, "COPY of the same rows", 0.5)


async def sparse(say: Callable[[str], None]) -> list[Result]:
    """A page of an index with 200 items costs the same however many items are not in it."""
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"sqlite:///{folder}/sparse{number}.db" for number in (FEW, MANY)]
        async with shop.connect(urls[0]) as smaller, shop.connect(urls[1]) as larger:
            for db, number in ((smaller, FEW), (larger, MANY)):
                say(f"SQLite: a page of an index with {SPARSE} of {number:,} items")
                await db.load(orders(number, pending=SPARSE))
            works = [partial(_pages, db) for db in (smaller, larger)]
            for work in works:
                await work()  # warm
            few, many = [seconds / PAGES for seconds in await processor(*works)]  # in turns, so that both see the same machine
    shown = (f"{many * 1e6:,.0f} µs", f"{few * 1e6:,.0f} µs")
    return [Result(f"SQLite table: a page of {SPARSE} of {MANY:,}", *shown, f"of {FEW:,}", many / few, 1.5, at_most=True)]


async def _pages(db: OpenTable) -> None:
    for _ in range(PAGES):
        assert len((await db.query(Order.pending(), first=PAGE)).items) == PAGE


def decoding(say: Callable[[str], None]) -> list[Result]:
    """Decode the same response of DynamoDB into items, beside what other toolkits do with it."""
    say("DynamoDB: decoding items")
    definition = shop.entities["Order"]
    page = json.dumps({"Items": [item_of(definition, each) for each in orders(DECODED)], "Count": DECODED}).encode()
    wire = EntityWire(definition)
    works = {"ours": lambda: [wire.build(each) for each in wire.decode_page(page).Items], **_peers(page)}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(PAIRS):
        for name, work in works.items():
            began = time.process_time()
            for _ in range(30):
                work()
            seconds[name].append((time.process_time() - began) / 30 / DECODED)
    ours = statistics.median(seconds.pop("ours"))
    targets = {"boto3": 5.0, "PynamoDB": 1.0, "dyntastic": 1.0}
    results = []
    for peer, measured in seconds.items():
        theirs = statistics.median(measured)
        shown = (f"{ours * 1e6:,.1f} µs", f"{theirs * 1e6:,.1f} µs")
        results.append(
            Result("DynamoDB table: decoding an item", *shown, f"{peer}, processor time", theirs / ours, targets.get(peer, 0.0))
        )
    return results


def _peers(page: bytes) -> dict[str, Callable[[], object]]:
    deserialize = TypeDeserializer().deserialize

    def boto3() -> list[dict[str, Any]]:
        return [{name: deserialize(value) for name, value in item.items()} for item in json.loads(page)["Items"]]

    peers: dict[str, Callable[[], object]] = {"boto3": boto3}
    with suppress(ModuleNotFoundError):  # `make bench` installs them
        from table_peers import dyntastic_decoder, pynamodb_decoder

        peers |= {"PynamoDB": pynamodb_decoder(page), "dyntastic": dyntastic_decoder(boto3)}
    with suppress(ModuleNotFoundError):
        from table_pydynox import pydynox_decoder

        peers["pydynox without parsing"] = pydynox_decoder(page)
    return peers
