"""The contract of a store: everything a backend must provide, as one object. `optional.py` has what it may provide."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from tickler.database.unit_of_work import Database
from tickler.fires.contract import FireStore
from tickler.index.contract import ScheduleIndex
from tickler.records.contract import RecordStore
from tickler.schedules.contract import ScheduleStore
from tickler.sends.contract import SendStore


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared differences between backends, so that no caller asks which backend it has."""

    shared: bool  # other processes can open the same store
    joins_transactions: bool  # writes accept `using=`
    order: Literal["total", "within-call"]  # earliest first across calls, or only within one call
    atomic: Literal["call", "each"] = "call"  # a write of many schedules is all or nothing, or each schedule is
    makes_tables: bool = True  # `connect` creates missing tables by default
    longest_name_bytes: int = 512  # owners and keys up to this length always fit
    clock_ms: int = 1  # resolution of the store's clock
    prunes_itself: bool = False  # expired history disappears on its own, some time later
    poll_ms: int = 1000  # longest pause between polls of an idle worker
    backup_tool: str = "use the tools of its engine"  # what to do instead, where the store does not implement `BacksUp`


class Store(Protocol):
    """A backend. Creating one does no I/O; call `open` first and `close` last.

    Opening creates a missing schema if `create` is set and never migrates one. It raises `SchemaMissing`, `SchemaOutdated` or
    `SchemaTooNew` when the schema does not fit this version.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def database(self) -> Database:
        """The connection, pool or client, which a table of the application can share."""

    @property
    def schedules(self) -> ScheduleStore: ...

    @property
    def index(self) -> ScheduleIndex: ...

    @property
    def records(self) -> RecordStore: ...

    @property
    def fires(self) -> FireStore: ...

    @property
    def sends(self) -> SendStore: ...

    async def open(self, *, create: bool) -> None: ...

    async def close(self) -> None: ...

    async def migrate(self) -> list[str]:
        """Bring the schema up to this version and return the names of the migrations that ran. The store must not be open."""
