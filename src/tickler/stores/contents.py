"""MOVE: the contract of all that a store holds, as it lies there, for whoever carries it into another store.

Nothing is decided here and nothing is read but for what it is: what does not read in one store does not read in the other, for
the same reason, and a worker that is newer finds what it wrote.
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

# in the index; set aside because it does not read; finished; or in no index: paused, or lost by accident
IndexState = Literal["indexed", "unreadable", "finished", "absent"]


class RawSchedule(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """A schedule as it lies in a store, and where it stands in the index. Of version 0: a row of the index alone.

    Of what is neither indexed nor unreadable, nothing is told of its row.
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
    next_fire_at: int | None = None  # or when it would have been due that was set aside
    ends_at: int | None = None
    offset_ms: int = 0
    format: int = ROW_FORMAT
    reason: str | None = None  # why it was set aside

    @property
    def id(self) -> Id:
        return Id(self.owner, self.key)

    @property
    def managed(self) -> bool:
        return self.version > 0

    @property
    def has_target(self) -> bool:
        """Whether a runner claims it. One whose body does not read is a runner's, who sets it aside."""
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
    """An entry of the history, and until when it is kept."""

    entry: Entry
    expires_at: int


class Part(Protocol[T]):
    """All things of one kind that a store holds."""

    async def count(self) -> int | None:
        """How many there are, roughly; None where to know that costs as much as to read them."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        """Some of them, about `limit`, perhaps none; and the cursor with which to go on, None at the end.

        A cursor stays good for another process. What stays as it is meanwhile comes exactly once; what comes, goes or changes,
        at most once, as it was at some time.
        """

    async def restore(self, things: Sequence[T]) -> None:
        """Write them as they are: all or none, or, where the store has no such thing, each for itself.

        What is there under the same name is replaced. A fire that is there is left alone, whatever became of it, and so is an
        entry that says the same: to restore again what was restored changes nothing.
        """


class Contents(NamedTuple):
    """All that a store holds, in the order in which it has to be written.

    A schedule takes over a row of the index alone; such a row is refused where there is a schedule: `ManagedRow`. Rows that say
    that a schedule stands behind them, and none does, are not among its contents. The history of a schedule comes together, by
    its `at`. Records are given whether they have expired or not.
    """

    records: Part[Record]
    schedules: Part[RawSchedule]
    rows: Part[RawSchedule]  # of the index, with no schedule behind them
    fires: Part[Fire]
    history: Part[HistoryItem]
