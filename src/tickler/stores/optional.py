"""Abilities that only some stores have. A store has one by implementing its protocol; callers ask with `isinstance`.

Each protocol says in its first line whose ability it is: that of the store, of its index or of its fires.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from tickler.database.progress import OnProgress, no_progress
from tickler.database.storage import StorageProblem
from tickler.errors import InvalidInput
from tickler.model.schedule import Id
from tickler.stores.contents import Contents
from tickler.stores.store import Store


@runtime_checkable
class HasClock(Protocol):
    """Store: it runs on a machine whose clock may differ from this one's."""

    async def now_ms(self) -> int | None:
        """Return the time there, or None when it does not answer with one."""


@runtime_checkable
class Watches(Protocol):
    """Store: it can wake workers instead of being polled."""

    async def watch(self, wake: Callable[[], None]) -> bool:
        """Call `wake` whenever a schedule that is due soon is written, by any process, until the connection ends.

        Return False at once where notifications cannot arrive, such as behind a connection pooler.
        """


@runtime_checkable
class ChecksStorage(Protocol):
    """Store: it can check the medium it is stored on."""

    async def storage_problem(self) -> StorageProblem | None: ...


@runtime_checkable
class BacksUp(Protocol):
    """Store: it can be written to a file and restored from one."""

    async def backup(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        """Write everything to a file, as of one instant, whether the store is open or not and while others use it.

        Replaces a file of that name. A failure leaves no partial file. Returns how many rows of each table were written.
        """

    async def restore(self, file: Path, on_progress: OnProgress = no_progress) -> dict[str, int]:
        """Replace the contents of a store that is not open with those of a backup, all or nothing. Returns counts likewise."""


def backed_up_to_files(store: Store, name: str) -> BacksUp:
    """Return the store as one with backups. `InvalidInput` names the engine's own tool where it has none."""
    if not isinstance(store, BacksUp):
        raise no_file(name, store.capabilities.backup_tool)
    return store


def no_file(name: str, tool: str) -> InvalidInput:
    return InvalidInput(f"{name} cannot be backed up to a file: {tool}, or copy it with `tickler copy FROM TO`")


@runtime_checkable
class PrintsDefinition(Protocol):
    """Store: its schema can be applied out of band."""

    def definition(self, form: str) -> str:
        """Return the whole schema in that form, such as "sql". `InvalidInput` names a form that it has."""


def no_such_form(name: str, form: str, known: str) -> InvalidInput:
    return InvalidInput(f"{name} cannot be defined in {form}: use --print-{known}")


@runtime_checkable
class Distributed(Protocol):
    """Store: its index is split into shards, and replicated between regions, each schedule being claimed in one of them."""

    async def reshard(self, shards: int, on_progress: OnProgress = no_progress) -> None:
        """Spread rows over more shards while workers run. The store must not be open."""

    async def move_home(self, region: str, from_region: str | None = None, on_progress: OnProgress = no_progress) -> None:
        """Let `region` claim everything, or what `from_region` claimed. The store must not be open."""


# unfound: missing from an index. set-aside: unreadable, and taken out of the index. not-sparse: the fault of an index that holds
# most items, not of one item.
Fault = Literal["unfound", "set-aside", "not-sparse"]


class MalformedItem(msgspec.Struct, frozen=True):
    """A stored item that no index finds: the attribute at fault, the reason, and the remedy.

    Where many items share the fault, this is one of `count`.
    """

    item: str
    attribute: str
    reason: str
    remedy: str = "write it anew"
    fault: Fault = "unfound"
    count: int = 1


@runtime_checkable
class FindsMalformedItems(Protocol):
    """Store: it has no column types, so an item can be written that an index silently leaves out."""

    def malformed_items(self) -> AsyncIterator[MalformedItem]:
        """Read the whole store and yield the items that no index finds. Slow. The store must not be open."""


@runtime_checkable
class HasContents(Protocol):
    """Store: `tickler copy` can move everything it holds into another store, and back."""

    @property
    def contents(self) -> Contents: ...


def contents_of(store: Store) -> Contents:
    """Return everything that a store holds. `InvalidInput` where it cannot be copied."""
    if not isinstance(store, HasContents):
        raise InvalidInput(f"{type(store).__name__} cannot be copied: it implements no `contents`")
    return store.contents


@runtime_checkable
class FindsOrphans(Protocol):
    """Index: rows and schedules are stored apart, so a row can lose its schedule when someone edits the store by hand."""

    async def orphans(self, limit: int) -> list[Id]:
        """Return ids of managed rows, indexed or set aside, that have no schedule; by owner and key."""

    async def drop_orphans(self, limit: int) -> int:
        """Remove up to `limit` orphans of each table and return how many. The row of a schedule that is being put stays."""


@runtime_checkable
class ReadsOwnerRows(Protocol):
    """Index: it reads the rows of one owner without reading their schedules."""

    async def next_fires(self, owner: str, limit: int) -> tuple[list[int], bool]:
        """Return when up to `limit` rows of an owner are due, in no order, and whether there may be more rows."""


@runtime_checkable
class CountsExpired(Protocol):
    """Fires: the history keeps expired entries until `prune` removes them."""

    async def count_expired(self, now_ms: int, most: int) -> int:
        """Return how many entries `prune` would remove, counting no further than `most`."""
