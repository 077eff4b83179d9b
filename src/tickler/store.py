"""The contract of a store: what a backend brings, as one object. Implementations are in `stores/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from tickler.errors import InvalidInput
from tickler.index import ScheduleIndex
from tickler.records import RecordStore
from tickler.schedules import ScheduleStore


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """How backends differ, declared: nothing above a store asks which one it is."""

    shared: bool  # other processes can open the same store
    joins_transactions: bool  # writes take `using=`
    order: Literal["total", "within-call"]  # earliest first over all calls, or only within one


class StoreUrl(msgspec.Struct, frozen=True):
    """A store's address, taken apart: `scheme://location?parameters`. `text` is what people may be shown: no password."""

    text: str
    scheme: str
    location: str
    parameters: Mapping[str, str]

    def __repr__(self) -> str:
        return f"StoreUrl({self.text!r})"

    def refuse_unknown(self, *known: str) -> None:
        for name in self.parameters:
            if name not in known:
                raise InvalidInput(f"{self.text}: nobody reads the parameter {name!r}: use {', '.join(known) or 'none'}")

    def seconds(self, name: str, default: float) -> float:
        text = self.parameters.get(name)
        try:
            seconds = default if text is None else float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= 3600:
            raise InvalidInput(f"{self.text}: {name}={text!r} is not a number of seconds from 0 to 3600")
        return seconds


class Store(Protocol):
    """A backend. Made without I/O; `open` before anything else, `close` after.

    Opening makes the schema where it is missing and `create` says so; it never migrates. `SchemaMissing`, `SchemaOutdated`
    or `SchemaTooNew` when what is there does not fit.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def schedules(self) -> ScheduleStore: ...

    @property
    def index(self) -> ScheduleIndex: ...

    @property
    def records(self) -> RecordStore: ...

    async def open(self, *, create: bool) -> None: ...

    async def close(self) -> None: ...

    async def now_ms(self) -> int | None:
        """The time on the store's own machine; None when that is this machine."""

    async def migrate(self) -> list[str]:
        """On a store that is not open: bring the schema up to this version. The names of the migrations that ran."""

    def migration_sql(self) -> str:
        """All of the schema as a script, for those who apply it out of band."""
