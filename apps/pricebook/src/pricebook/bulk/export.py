"""Exports prices as a stream: those that count at one instant, in the order of their keys. Importing them changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.bulk.csv_writer import CsvWriter
from pricebook.bulk.ndjson import NdjsonWriter
from pricebook.editions.evaluate import Editions
from pricebook.editions.judges import judged
from pricebook.editions.nodes import price_node
from pricebook.editions.pages import PriceNode
from pricebook.editions.timing import Now, Timing, whole_milliseconds
from pricebook.errors import NotAllowed, NotFound
from pricebook.model import BulkFormat, CombinationPrice, Head, Price, PriceRow, Store, has_combination
from tickler.table import MISSING, OpenTable

STORES_AT_A_TIME = 100
ROWS_AT_A_TIME = 1_000  # the most that the table toolkit returns at once


class ExportOptions(Struct, frozen=True, kw_only=True):
    """What to export: everything, or only some stores, channels and types."""

    format: BulkFormat = "ndjson"
    delimiter: Literal[",", ";"] = ","
    stores: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def check(self) -> None:
        for type in self.types:
            has_combination(type)  # refuses unknown types


class Writer(Protocol):
    """Writes prices in one format. `kind` is its media type."""

    @property
    def kind(self) -> str: ...

    def begin(self) -> bytes: ...

    def lines(self, nodes: Iterable[PriceNode]) -> bytes: ...


class Export(Struct, frozen=True):
    """An export that has not begun. `pieces` are its bytes, at most one page of rows at a time."""

    kind: str
    pieces: AsyncIterator[bytes]


class Exports:
    def __init__(self, db: OpenTable, now: Now, timing: Timing | None = None) -> None:
        self._db = db
        self._now = now
        self._timing = timing or Timing()

    async def export(self, caller: Caller, options: ExportOptions) -> Export:
        """Return the prices of the stores that a caller may see. A store that is named has to be there."""
        caller.require("read")
        options.check()
        writer: Writer = CsvWriter(options.delimiter) if options.format == "csv" else NdjsonWriter()
        stores = sorted(set(options.stores))
        for store in stores:
            caller.require_store(store)
            if await self._db.get(Head.key.id(store)) is None:
                raise NotFound("store")
        listed = _pages_of(stores) if stores else self._all_stores(caller)
        return Export(writer.kind, self._pieces(writer, listed, options))

    async def _pieces(self, writer: Writer, stores: AsyncIterator[Sequence[str]], options: ExportOptions) -> AsyncIterator[bytes]:
        at = whole_milliseconds(self._now())
        yield writer.begin()
        async for some in stores:
            for head in await self._db.get_many([Head.key.id(store) for store in some]):
                if head is None:
                    continue
                async for nodes in self._of_store(head, at, options):
                    if piece := writer.lines(nodes):
                        yield piece
                    await asyncio.sleep(0)  # a reader of SQLite does not wait, and others have to run

    async def _of_store(self, head: Head, at: datetime, options: ExportOptions) -> AsyncIterator[list[PriceNode]]:
        """Yield the prices of a store at an instant. The head was read before its rows, as by other readers."""
        heads: dict[str, Editions] = {head.store: head.editions}
        is_fresh = head.sealed_at is not MISSING and self._now() - head.sealed_at < self._timing.fresh
        cursor: str | None = None
        selections: list[Any] = [Price.key(head.store), CombinationPrice.key(head.store)]
        while True:
            self._check_age(at)
            page = await self._db.query(*selections, first=ROWS_AT_A_TIME, after=cursor, consistent=is_fresh)
            rows = [row for row in page.items if _is_asked_for(row, options)]
            yield await self._nodes(rows, heads, at)
            if not page.has_next:
                return
            cursor = page.end

    async def _nodes(self, rows: Sequence[PriceRow], heads: dict[str, Editions], at: datetime) -> list[PriceNode]:
        counting = await judged(rows, heads, at, self._db)
        nodes = (None if each is None else price_node(row, each) for row, each in zip(rows, counting, strict=True))
        return [node for node in nodes if node is not None]

    async def _all_stores(self, caller: Caller) -> AsyncIterator[Sequence[str]]:
        cursor: str | None = None
        while True:
            page = await self._db.query(Store.all(), first=STORES_AT_A_TIME, after=cursor)
            yield [entry.store for entry in page.items if caller.may_see(entry.store)]
            if not page.has_next:
                return
            cursor = page.end

    def _check_age(self, at: datetime) -> None:
        """Rows have former prices for so long: after that, they no longer tell those of the instant of this export."""
        if self._now() - at > self._timing.retention:
            raise NotAllowed("the export took too long: take it faster, or some stores at a time")


async def _pages_of(stores: Sequence[str]) -> AsyncIterator[Sequence[str]]:
    for first in range(0, len(stores), STORES_AT_A_TIME):
        yield stores[first : first + STORES_AT_A_TIME]


def _is_asked_for(row: PriceRow, options: ExportOptions) -> bool:
    return _among(row.channel, options.channels) and _among(row.type, options.types)


def _among(name: str, names: Collection[str]) -> bool:
    return not names or name in names
