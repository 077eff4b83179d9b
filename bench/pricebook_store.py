"""The catalogue of pricebook's benchmarks: loaded once in a run, by `pricebook_load` or by whichever needs it first.

`PRICEBOOK_BENCH=small` or `tiny` measures the same with less data, to see that it works.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import asyncpg
from msgspec import Struct

from measure import shared_folder
from postgres import PostgresServer
from pricebook.loading.loader import load_catalogue
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import pricebook
from tickler.table import progress_bar
from tickler.table.open_table import OpenTable

SIZE = "PRICEBOOK_BENCH"
SETTLED_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "pricebook_bench"


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured. Each store has `products` prices, and `few` stores are loaded for comparison."""

    stores: int
    products: int
    few: int
    pending: int  # stores that have an upcoming change
    measured_s: float  # that readers ask at a rate
    pages: int  # that are asked for one after the other
    switched: int  # stores that become effective at once
    switched_products: int
    staged: int  # products of one change set
    buffer_s: float  # within which an instant is too near to have a schedule of its own: 60 in production
    spread_s: float  # over which stores are settled that change at once: 20 in production

    @property
    def prices(self) -> int:
        return self.stores * self.products


SIZES = {
    "full": Size(
        stores=8_000, products=500, few=80, pending=400, measured_s=30, pages=10_000, switched=1_000, switched_products=25,
        staged=500, buffer_s=60, spread_s=20,
    ),
    "small": Size(
        stores=400, products=100, few=80, pending=40, measured_s=5, pages=1_500, switched=60, switched_products=20, staged=100,
        buffer_s=2, spread_s=2,
    ),
    "tiny": Size(
        stores=80, products=70, few=70, pending=10, measured_s=0.5, pages=60, switched=5, switched_products=5, staged=20,
        buffer_s=0.5, spread_s=0.5,
    ),
}  # fmt: skip


def size() -> Size:
    return SIZES[os.environ.get(SIZE, "full")]


class Took(NamedTuple):
    """What a work took: `processor_s` is that of all threads of this process, and of PostgreSQL where that does the work."""

    processor_s: float
    wall_s: float


async def timed(work: Callable[[], Awaitable[object]], server: PostgresServer | None = None) -> Took:
    def processor_s() -> float:
        return time.process_time() + (0 if server is None else _processor_s(server))

    wall, processor = time.perf_counter(), processor_s()
    await work()
    return Took(processor_s() - processor, time.perf_counter() - wall)


def _processor_s(server: PostgresServer) -> float:
    """Return the processor seconds of a PostgreSQL, its processes that have ended included; 0 where there is no /proc."""
    postmaster = int((server.socket_folder / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()  # from the third on
            if int(stat.parent.name) == postmaster:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == postmaster:
                ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def sqlite_path(stores: int) -> Path:
    return shared_folder() / f"pricebook-{stores}x{size().products}.db"


async def sqlite_url(stores: int) -> str:
    """Return a store on SQLite with a loaded catalogue."""
    path = sqlite_path(stores)
    if not path.exists():
        await load_sqlite(stores)
    return f"sqlite:///{path}"


async def load_sqlite(stores: int) -> Took:
    """Load a new database, and give it its name once it is complete."""
    path = sqlite_path(stores)
    loading = path.with_suffix(".loading")
    loading.unlink(missing_ok=True)
    async with pricebook.connect(f"sqlite:///{loading}") as db:
        took = await timed(lambda: _load(db, stores, f"SQLite, {stores:,} stores"))
    with closing(sqlite3.connect(loading)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    loading.rename(path)
    return took


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run the server whose data is in the folder of this run."""
    folder = shared_folder()
    folder.chmod(0o755)
    with PostgresServer(folder / "postgres") as server:
        yield server


async def postgres_url(server: PostgresServer) -> str:
    url = server.url(SCHEMA)
    raw = await asyncpg.connect(server.dsn)
    is_loaded = await raw.fetchval("SELECT to_regnamespace($1) IS NOT NULL", SCHEMA)
    await raw.close()
    if not is_loaded:
        await load_postgres(server)
    return url


async def load_postgres(server: PostgresServer) -> Took:
    async with pricebook.connect(server.url(SCHEMA)) as db:
        took = await timed(lambda: _load(db, size().stores, "PostgreSQL"), server)
    raw = await asyncpg.connect(server.dsn)
    await raw.execute(f"VACUUM ANALYZE {SCHEMA}.pricebook", timeout=600)
    await raw.close()
    return took


async def _load(db: OpenTable, stores: int, where: str) -> None:
    with progress_bar(where) as show:

        def on_progress(activity: str, done: int, total: int | None) -> None:
            show(f"{where}: {activity}", done, total)

        await load_catalogue(db, MadeCatalogue(stores, size().products), SETTLED_SINCE, on_progress=on_progress)


def remove(path: Path) -> None:
    for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        each.unlink(missing_ok=True)
