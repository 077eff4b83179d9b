"""A table as a program declares it, and the way to where its items are."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

import msgspec

from tickler.clock import Clock, SystemClock
from tickler.database.blocking import Blocking
from tickler.database.extras import needing_extra
from tickler.database.store_url import StoreUrl, parse_url
from tickler.database.unit_of_work import Database
from tickler.errors import InvalidInput
from tickler.table.blocking_table import BlockingTable
from tickler.table.condition import Condition
from tickler.table.definition import TableDefinition
from tickler.table.engines.engine import Engine
from tickler.table.measurement import Measurement
from tickler.table.open_table import OpenTable
from tickler.table.schema.advisor import advise
from tickler.table.schema.describe import describe
from tickler.table.schema.finding import Advice
from tickler.table.schema.schema import Schema

# The module of each engine has `open_engine(table, url)`, `shared_engine(table, database, name)`, `streamed_tables(database)`.
_BY_SCHEME = {
    "memory": "tickler.table.engines.memory.engine",
    "sqlite": "tickler.table.engines.sqlite.engine",
    "postgresql": "tickler.table.engines.postgres.engine",
    "postgres": "tickler.table.engines.postgres.engine",
    "dynamodb": "tickler.table.engines.dynamodb.engine",
}
_BY_DATABASE = {
    "tickler.database.memory": _BY_SCHEME["memory"],
    "tickler.database.sqlite.connection": _BY_SCHEME["sqlite"],
    "tickler.database.postgres.pool": _BY_SCHEME["postgres"],
    "tickler.dynamo.client": _BY_SCHEME["dynamodb"],
}


class HasDatabase(Protocol):
    """A Tickler, whose connection, pool or client a table can share."""

    @property
    def database(self) -> Database: ...

    @property
    def clock(self) -> Clock: ...


class Table(TableDefinition):
    """Declare it once and pass it to entities as `table=`; then `async with shop.connect("sqlite:///app.db") as db:`."""

    def connect(
        self, source: str | HasDatabase, *, name: str | None = None, create: bool | None = None, clock: Clock | None = None
    ) -> OpenTable:
        """Return the table at a URL, or in the database of an open Tickler. Nothing is opened before `async with`.

        URLs are `sqlite:///file.db`, `sqlite://` and `memory://` (gone when it is closed), `postgresql://…?schema=…` and
        `dynamodb://TABLE?region=…`. With a Tickler on DynamoDB, `name` is that of the DynamoDB table; by default this table's.
        `create` (in a URL `?create=0`) decides whether a missing table or index is created: by default yes, on DynamoDB no.
        """
        if not isinstance(source, str):
            _check_shareable(source)
            engine = _shared(self, source.database, name)
            return OpenTable(self, engine, clock or source.clock, create=engine.makes_tables if create is None else create)
        url = parse_url(source)
        if name is not None:
            raise InvalidInput("name= is for a Tickler: in a URL, write dynamodb://NAME; elsewhere a table has its own name")
        if url.scheme not in _BY_SCHEME:
            schemes = ", ".join(f"{scheme}://" for scheme in _BY_SCHEME)
            raise InvalidInput(f"{url.text!r} has an unknown scheme: use one of {schemes}")
        bare = msgspec.structs.replace(url, parameters={k: v for k, v in url.parameters.items() if k != "create"})
        module = needing_extra(_BY_SCHEME[url.scheme], f"{url.scheme}://")
        engine = cast(Engine, module.open_engine(self, bare))
        wanted = _wants_table(url, engine.makes_tables) if create is None else create
        return OpenTable(self, engine, clock or SystemClock(), create=wanted)

    def connect_sync(
        self, source: str | Blocking, *, name: str | None = None, create: bool | None = None, clock: Clock | None = None
    ) -> BlockingTable:
        """Return the same without `await`: `with shop.connect_sync(url) as db:`. `source` may also be a blocking Tickler."""
        if isinstance(source, Blocking):
            return source.beside(lambda tickler: self.connect(tickler, name=name, create=create, clock=clock), BlockingTable)
        if not isinstance(source, str):
            raise InvalidInput(
                "connect_sync: pass a URL, or what tickler.connect_sync returned: this has an event loop elsewhere"
            )
        return BlockingTable(self.connect(source, name=name, create=create, clock=clock))

    def describe(self) -> Schema:
        """Return what the table looks like: which entity writes which key where, while what, and which calls that answers."""
        return describe(self)

    def advise(
        self,
        measured: Measurement | None = None,
        *,
        writes_per_second: float | None = None,
        find: Condition[Any] | None = None,
    ) -> Advice:
        """Say what to change about the indexes, with what `measure` of an open table returned, or without.

        `writes_per_second`: the highest rate that a single partition gets. `find`: a condition; which call finds its items?
        """
        return advise(self, measured, writes_per_second=writes_per_second, find=find)


def _check_shareable(source: object) -> None:
    if isinstance(source, Blocking):
        raise InvalidInput("connect: this is a blocking Tickler: use connect_sync")
    if not hasattr(source, "database") or not hasattr(source, "clock"):
        raise InvalidInput(f"connect: {type(source).__name__} is not a Tickler: pass one, or a URL such as 'sqlite:///app.db'")


def _shared(table: TableDefinition, database: Database, name: str | None) -> Engine:
    module = engine_module(database)
    if module is None:
        raise InvalidInput(f"a table cannot share {database.name}: connect it by a URL")
    return cast(Engine, module.shared_engine(table, database, name or table.name))


def engine_module(database: Database) -> Any:
    """Return the module of the engine for a database that is open, None for another kind."""
    name = _BY_DATABASE.get(type(database).__module__)
    return None if name is None else import_module(name)


def _wants_table(url: StoreUrl, by_default: bool) -> bool:
    text = url.parameters.get("create", "1" if by_default else "0")
    if text not in ("0", "1"):
        raise InvalidInput(f"{url.text}: create={text!r} is invalid: write create=1 or create=0")
    return text == "1"
