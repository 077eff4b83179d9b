"""The contract of a store: what a backend brings, as one object. Implementations are in `stores/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from tickler.database.progress import OnProgress, no_progress
from tickler.database.storage import StorageProblem
from tickler.errors import InvalidInput
from tickler.fires.contract import FireStore
from tickler.index.contract import ScheduleIndex
from tickler.records.contract import RecordStore
from tickler.schedules.contract import ScheduleStore
from tickler.stores.contents import Contents


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """How backends differ, declared: nothing above a store asks which one it is."""

    shared: bool  # other processes can open the same store
    joins_transactions: bool  # writes take `using=`
    order: Literal["total", "within-call"]  # earliest first over all calls, or only within one
    atomic: Literal["call", "each"] = "call"  # a write of many schedules is all or none, or each is for itself
    makes_tables: bool = True  # opening makes what is missing unless it is told not to
    longest_name_bytes: int = 512  # owners and keys of this length always fit
    clock_ms: int = 1  # how exactly it tells the time
    prunes_itself: bool = False  # the history loses what has expired without being asked, some time after
    poll_ms: int = 1000  # how often a runner with nothing to do asks whether others put something that is due sooner


Form = Literal["sql", "cloudformation", "terraform", "iam"]


class MigrationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `migrate` may be asked for beyond the schema, of stores that are spread out."""

    shards: int | None = None  # spread rows over so many
    home: str | None = None  # let this region claim what others did
    come_from: str | None = None  # only what was at home there

    def refuse(self, store: str) -> None:
        """For stores that have neither."""
        if self != MigrationOptions():
            raise InvalidInput(f"{store} has no shards and no regions: leave --shards and --home out")


NO_OPTIONS = MigrationOptions()


# unfound: left out of an index without a word. set-aside: taken out of it, as it does not read. not-sparse: of an index, not of
# an item, since it holds most of what there is.
Fault = Literal["unfound", "set-aside", "not-sparse"]


class MalformedItem(msgspec.Struct, frozen=True):
    """Something stored that no index finds, by the name of the item, the attribute at fault, why, and what mends it.

    Where the fault is that of many, the item is one of `count`.
    """

    item: str
    attribute: str
    reason: str
    remedy: str = "write it anew"
    fault: Fault = "unfound"
    count: int = 1


def no_file(store: str, remedy: str) -> InvalidInput:
    """For stores whose engine has better tools for that."""
    return InvalidInput(f"{store} is not backed up into a file: {remedy}, or copy it with `tickler copy FROM TO`")


def no_such_form(store: str, form: Form, known: str) -> InvalidInput:
    return InvalidInput(f"{store} cannot be defined in {form}: use --print-{known}")


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

    @property
    def fires(self) -> FireStore: ...

    @property
    def contents(self) -> Contents: ...

    async def open(self, *, create: bool) -> None: ...

    async def close(self) -> None: ...

    async def now_ms(self) -> int | None:
        """The time on the store's own machine; None when that is this machine."""

    async def watch(self, wake: Callable[[], None]) -> bool:
        """Call `wake` when somebody, here or elsewhere, writes a schedule that is due soon: until the connection ends.

        False, and at once, when this store has no way to tell.
        """

    async def migrate(self, wanted: MigrationOptions = NO_OPTIONS, on_progress: OnProgress = no_progress) -> list[str]:
        """On a store that is not open: bring the schema up to this version, and do what is wanted, reporting progress.

        The names of the migrations that ran.
        """

    def misfits(self) -> AsyncIterator[MalformedItem]:
        """On a store that is not open: read all of it and name what no index finds. Slow, and usually nothing."""

    async def backup(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        """Write all of it into a file, open or not and while others work: as it is at one instant, whole, or no file at all.

        What is there under that name is replaced. How much of what it holds. `InvalidInput`, with the tool to use, where the
        engine has one of its own.
        """

    async def restore(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        """On a store that is not open: make it what such a file holds, all of it or nothing. How much of what that is."""

    def definition(self, form: Form) -> str:
        """All of the schema in that form, for those who apply it out of band. `InvalidInput` when it has no such form."""


@runtime_checkable
class ChecksStorage(Protocol):
    """Optional: a store that can tell whether the medium it lies on is well."""

    async def storage_problem(self) -> StorageProblem | None: ...


async def no_malformed_items() -> AsyncIterator[MalformedItem]:
    """For stores whose columns have types: there are none."""
    nothing: tuple[MalformedItem, ...] = ()
    for misfit in nothing:
        yield misfit
