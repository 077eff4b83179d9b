"""The contract of an engine. It stores items and keeps the keys of their indexes in step; it decides nothing by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

import msgspec

from tickler.database.progress import OnProgress, no_progress
from tickler.database.unit_of_work import Database
from tickler.table.condition import Condition
from tickler.table.engines.change_log import ChangeLog
from tickler.table.engines.metadata import Metadata
from tickler.table.key import ItemId
from tickler.table.measurement import Measurement
from tickler.table.operation import Operation
from tickler.table.selection import Span

# Among the names of what `open` has created:
THE_TABLE = "the table"
THE_STREAM = "the stream"

Position = tuple[str | int, ...]  # of an item in a span: its sort key first, then what tells equal ones apart


class Ask(msgspec.Struct, frozen=True):
    """A request for up to `limit` items of a span, in the order of their keys, or backwards.

    `start` is a position, behind which reading begins; it need not exist any more. Items of entities that are not in `entities`
    are left out. An engine may leave out items that do not satisfy `where`, if that saves something; the caller does so anyway.
    """

    span: Span
    limit: int
    entities: frozenset[str]
    start: Position | None = None
    backwards: bool = False
    where: Condition[Any] | None = None
    consistent: bool = False


class Slice(NamedTuple):
    """Items with their positions. `resume` is where to go on, None at the end of the span."""

    items: Sequence[Any]
    positions: Sequence[Position]
    resume: Position | None


class Reindexed(NamedTuple):
    """How many items a step of a reindex has seen, and how many had other keys. `position` is where to go on, None at the end."""

    position: str | None
    seen: int
    changed: int


class Reader(Protocol):
    """Reads items. Expired ones are absent from every read: `now_ms` says which."""

    async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
        """Return the items with these keys, in order, None for each absent one. `SchemaMismatch` if one is of another entity."""

    async def slice(self, ask: Ask, *, now_ms: int) -> Slice: ...

    async def count(self, span: Span, entities: frozenset[str], *, consistent: bool, now_ms: int) -> int:
        """Count the items of a span without decoding them."""


class Engine(Reader, Protocol):
    """A backend of one table. Creating one does no I/O; call `open` first and `close` last."""

    @property
    def database(self) -> Database:
        """Where the table is, for units of work."""

    @property
    def metadata(self) -> Metadata:
        """What is kept about the table beside its items."""

    @property
    def changes(self) -> ChangeLog:
        """The log of changes. It is kept only if the table is defined with `stream=True`."""

    @property
    def makes_tables(self) -> bool:
        """Whether a missing table is created unless the caller says otherwise."""

    async def open(self, *, create: bool) -> list[str]:
        """Connect. `create` makes the table and indexes that are missing; otherwise `SchemaMissing` or `SchemaMismatch`.

        Returns the names of what was missing: of indexes, and first `THE_TABLE`.
        """

    async def close(self) -> None: ...

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[Any] = ()) -> list[Any]:
        """Do all operations or none, and return the entity that each leaves behind; for a delete, the one that it deleted.

        No two operations name the same item. An operation sees the items as they are at commit. Raises what `decide` raises, and
        `SchemaMismatch` for an item of another entity than its key is; a put for which `is_blind` takes the place of that.
        DynamoDB returns no items from a transaction. What it leaves behind is computed there from a read just before, and may be
        outdated in attributes that an operation neither changes nor depends on.
        `parts` are what others have added to a unit of work; they are done in the same transaction.
        """

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        """Do puts and deletes without conditions, each atomic, in few requests. If it fails, some may be done."""

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        """Put many items that are not there yet, indexes last where that is faster. Returns their number.

        All or nothing on SQL. On DynamoDB each is atomic, and the call can be repeated. Unless they are `streamed`, an engine
        that can leave them out of the log of changes does.
        """

    def snapshot(self) -> AbstractAsyncContextManager[Reader]:
        """Open a reader whose reads all see one state. `InvalidInput` where the engine has no such thing."""

    async def has_more_than(self, items: int) -> bool: ...

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        """Count the items of each entity in the table and in each index, and find the largest partitions.

        An engine that has to read items for it reads up to `sample` of the table and of each index, and estimates; None: all.
        """

    async def reindex_some(self, after: str | None) -> Reindexed:
        """Write the keys of some items anew where they are not as defined now, behind the position `after`; None: from the first.

        Others may write meanwhile.
        """

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        """Delete up to `limit` expired items, and return how many. Engines that expire items by themselves return 0."""
