"""The contract of a store's contents, as `tickler copy` moves them into another store.

Contents are copied as they are stored, without interpreting them: an unreadable row stays unreadable, and fields of a newer
version are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from tickler.index.advance import ROW_FORMAT
from tickler.model.fire import Entry, Fire
from tickler.model.record import Record
from tickler.model.schedule import Id

T = TypeVar("T")

# in the index; set aside as unreadable; finished; or in no index, because it is paused or was lost
IndexState = Literal["indexed", "unreadable", "finished", "absent"]


class RawSchedule(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """A schedule as it is stored, and its place in the index. Version 0 means a row of the index without a schedule.

    The fields of its row are set only if it is indexed or unreadable.
    """

    owner: str
    key: str
    when_text: str
    tz: str
    version: int = 0
    created_at: int = 0
    updated_at: int = 0
    enabled: bool = True
    body: str = "{}"
    standing: IndexState = "absent"
    next_fire_at: int | None = None  # of a row that was set aside: when it was due
    ends_at: int | None = None
    offset_ms: int = 0
    format: int = ROW_FORMAT
    reason: str | None = None  # why it is unreadable

    @property
    def id(self) -> Id:
        return Id(self.owner, self.key)

    @property
    def managed(self) -> bool:
        return self.version > 0

    @property
    def has_target(self) -> bool:
        """Tell whether workers claim it. They also claim one with an unreadable body, to set it aside."""
        if not self.managed:
            return False
        try:
            return "target" in msgspec.json.decode(self.body, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            return True


def without_place(raw: RawSchedule) -> RawSchedule:
    """Return the schedule without what does not belong to its state: a place in the index, or a reason."""
    if raw.standing not in ("indexed", "unreadable"):
        return replace(raw, next_fire_at=None, ends_at=None, offset_ms=0, format=ROW_FORMAT, reason=None)
    return raw if raw.standing == "unreadable" or raw.reason is None else replace(raw, reason=None)


class HistoryItem(NamedTuple):
    """An entry of the history, and when it expires."""

    entry: Entry
    expires_at: int


class Part(Protocol[T]):
    """All things of one kind that a store holds."""

    async def count(self) -> int | None:
        """Return roughly how many there are, or None where counting costs as much as reading."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        """Return a page of about `limit` things, perhaps none, and the cursor of the next page, None at the end.

        A cursor is valid in other processes. A thing that does not change meanwhile is returned exactly once; one that does, at
        most once, as it was at some time.
        """

    async def restore(self, things: Sequence[T]) -> None:
        """Write things as they are: all or none, or each for itself where the store has no transactions.

        A thing of the same name is replaced. A fire that exists is left alone, whatever its state, and so is an equal entry:
        repeating a restore changes nothing.
        """


class Contents(NamedTuple):
    """Everything that a store holds, in the order in which it has to be written.

    Restoring a schedule takes over an unmanaged row; restoring an unmanaged row raises `ManagedRow` where there is a schedule.
    Orphaned rows are not among the contents. The history of a schedule is in one piece, ordered by `at`. Expired records are
    included.
    """

    records: Part[Record]
    schedules: Part[RawSchedule]
    rows: Part[RawSchedule]  # of the index, without a schedule
    fires: Part[Fire]
    history: Part[HistoryItem]
