"""DUE: the contract of the schedule index, for callers who dispatch by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from tickler.clock import to_any_ms, to_ms
from tickler.errors import InvalidInput
from tickler.model.schedule import Id, check_name, checked_id
from tickler.when import KINDS, When

MOST_CLAIMED = 100_000
LONGEST_OFFSET_MS = 366 * 86_400_000

P = TypeVar("P")


class IndexRow(msgspec.Struct, frozen=True, gc=False):
    """One active schedule. `next_fire_at` is when it is due: the nominal instant, plus the offset of its spread."""

    owner: str
    key: str
    when: When
    next_fire_at: int
    ends_at: int | None = None  # no nominal instant after this one
    offset_ms: int = 0
    managed: bool = False  # a schedule of `schedules` stands behind it

    @property
    def timezone(self) -> str:
        return self.when.tz

    @property
    def nominal_at(self) -> int:
        return self.next_fire_at - self.offset_ms


class SetAside(msgspec.Struct, frozen=True):
    """A row that was moved out of the index because its `when` does not read, with all it had."""

    owner: str
    key: str
    when_text: str
    tz: str
    next_fire_at: int
    reason: str
    managed: bool


class ScheduleIndex(Protocol):
    """Finds what is due without looking at what is not.

    One row per active schedule. A paused, finished or deleted schedule has no row: absence, not a flag. `now_ms` is the
    caller's; an index never looks at a clock. `using` is a connection of the caller's own with a transaction open, which
    the write then joins; what it may be is the store's to say.
    """

    async def upsert_many(self, rows: Sequence[IndexRow], *, using: object = None) -> None:
        """Insert or replace rows by owner and key, all or none. `ManagedRow` where a schedule stands behind one."""

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        """Remove the row, from the index and from what was set aside; nothing when it is absent."""

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        """Take up to `limit` rows with next_fire_at <= now_ms, earliest first, and advance them from now_ms.

        Atomic: no other caller, at this instant or later, gets the same occurrence. Rows come back as they were before
        the advance. At most once: whoever loses them after this returns has lost them.

        A row with no instant left leaves the index. A row that does not read is set aside, does not count towards
        `limit`, and blocks nothing. A row of a newer format is left where it is, and this worker reported as outdated.
        `WorkerUnfit`, and nothing claimed, when a row's zone is known to others and not to this machine.
        """

    async def next_due(self) -> int | None:
        """The earliest next_fire_at, or None."""

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        """How many rows there are, or are due by an instant. Counts no further than `most`, and reads no more than it counts."""

    async def next_fires(self, owner: str, limit: int) -> tuple[list[int], bool]:
        """When the rows of an owner are due, of up to `limit` of them and in no order; and whether there may be more."""

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        """Rows that do not read, by owner and key."""

    async def count_set_aside(self) -> int:
        """How many rows do not read; 0 is what it should be."""

    async def restore(self) -> int:
        """Move rows that were set aside and can be read now back into the index, as they were; how many."""

    async def orphans(self, limit: int) -> list[Id]:
        """Rows, in the index or set aside, behind which a schedule should stand and none does; by owner and key.

        There are none, unless somebody has changed the store behind its back.
        """

    async def drop_orphans(self, limit: int) -> int:
        """Remove up to `limit` of them; how many. The row of a schedule that is being put right now stays."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        """Every row once, page by page: up to `limit` of them, and the cursor of the following page, None at the end.

        No order is promised. Each page is a bounded read by key, and holds nobody up: rows that come and go meanwhile may or
        may not be met, a row that stays is. Rows that this worker cannot read, and those of a newer format, are left out, so
        that a page may be short or empty before the end. A store whose key is when a row is due says what becomes of one that
        moves. `InvalidInput` for a cursor that this store did not give.
        """


class Index:
    """What callers use: checks what it is given, then asks the store's index.

    Instants that look like another unit, such as 1_700_000_000, are refused; `any_instant=True` takes those of any year.
    """

    def __init__(self, store: ScheduleIndex) -> None:
        self._store = store

    async def upsert(self, row: IndexRow, *, using: object = None, any_instant: bool = False) -> None:
        await self.upsert_many([row], using=using, any_instant=any_instant)

    async def upsert_many(self, rows: Iterable[IndexRow], *, using: object = None, any_instant: bool = False) -> None:
        checked = [_checked(row, position, any_instant) for position, row in enumerate(rows)]
        if len({(row.owner, row.key) for row in checked}) < len(checked):
            raise InvalidInput("rows: the same owner and key come twice: leave one of them out")
        if checked:
            await self._store.upsert_many(checked, using=using)

    async def claim_due(self, now_ms: int | datetime, limit: int = 100, *, any_instant: bool = False) -> list[IndexRow]:
        return await self._store.claim_due(_ms(now_ms, "now_ms", any_instant), check_limit(limit))

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        check_name("owner", owner)
        check_name("key", key)
        await self._store.remove(owner, key, using=using)

    async def next_due(self) -> int | None:
        return await self._store.next_due()

    async def count(self, *, due_by: int | datetime | None = None, most: int | None = None, any_instant: bool = False) -> int:
        """How many rows there are, or are due by an instant; no further than `most`: it costs what it counts."""
        until = None if due_by is None else _ms(due_by, "due_by", any_instant)
        return await self._store.count(due_by=until, most=None if most is None else check_limit(most))

    async def next_fires(self, owner: str, limit: int = 1000) -> tuple[list[int], bool]:
        """When the rows of an owner are due, of up to `limit` of them and in no order; and whether there may be more."""
        check_name("owner", owner)
        return await self._store.next_fires(owner, check_limit(limit))

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        return await self._store.set_aside(check_limit(limit))

    async def count_set_aside(self) -> int:
        return await self._store.count_set_aside()

    async def restore(self) -> int:
        return await self._store.restore()

    async def walk(self, cursor: str | None = None, limit: int = 1000) -> tuple[list[IndexRow], str | None]:
        """Every row that reads, page by page, in no order; pass the cursor that came with a page for the next, until it is None.

        A row that moves while it is looked for may, on DynamoDB, be met twice.
        """
        if cursor is not None and not isinstance(cursor, str):
            raise not_a_cursor(cursor)
        return await self._store.walk(cursor, check_limit(limit))


def walk_cursor(place: object) -> str:
    """Where a walk stands, as text."""
    return msgspec.json.encode(place).decode()


def walk_place(cursor: str, kind: type[P]) -> P:
    """Where a walk stood. `InvalidInput` for what `walk_cursor` has not made of a place of that kind."""
    try:
        return msgspec.json.decode(cursor, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        raise not_a_cursor(cursor) from None


def walk_id(cursor: str) -> Id:
    """Where a walk by owner and key stood."""
    try:
        return checked_id(*walk_place(cursor, Id))
    except InvalidInput:
        raise not_a_cursor(cursor) from None


def not_a_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"cursor: {ascii(cursor)[:40]} is not one that `walk` gave here: begin with None")


def check_limit(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_CLAIMED:
        raise InvalidInput(f"limit: {limit!r} is not a number of rows: pass a whole number from 1 to {MOST_CLAIMED}")
    return limit


def _ms(instant: int | datetime, name: str, any_instant: bool) -> int:
    return to_any_ms(instant, name) if any_instant else to_ms(instant, name, remedy="; any_instant=True takes it as it is")


def _checked(row: object, position: int, any_instant: bool) -> IndexRow:
    """The row with its instants in milliseconds; refuses what no store could keep or advance."""
    name = f"rows[{position}]"
    if not isinstance(row, IndexRow):
        raise InvalidInput(f"{name}: is a {type(row).__name__}: pass an IndexRow")
    check_name("owner", row.owner)
    check_name("key", row.key)
    if type(row.when) not in KINDS:
        raise InvalidInput(
            f"{name}.when: is a {type(row.when).__name__}: pass a When, such as parse_when({str(row.when)[:80]!r})"
        )
    if isinstance(row.offset_ms, bool) or not isinstance(row.offset_ms, int) or not 0 <= row.offset_ms <= LONGEST_OFFSET_MS:
        raise InvalidInput(f"{name}.offset_ms: {row.offset_ms!r} is not a number of milliseconds from 0 to {LONGEST_OFFSET_MS}")
    if row.managed is not False:
        raise InvalidInput(f"{name}.managed: only `schedules` writes managed rows: leave it out")
    next_fire_at = _ms(row.next_fire_at, f"{name}.next_fire_at", any_instant)
    ends_at = None if row.ends_at is None else _ms(row.ends_at, f"{name}.ends_at", any_instant)
    return replace(row, next_fire_at=next_fire_at, ends_at=ends_at)
