"""The schedule index as callers use it who dispatch by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from tickler.clock import to_any_ms, to_ms
from tickler.errors import InvalidInput
from tickler.index.contract import ScheduleIndex
from tickler.model.cursor import invalid_walk_cursor
from tickler.model.index_row import IndexRow, SetAside
from tickler.model.limits import check_limit
from tickler.model.schedule import check_name
from tickler.when import KINDS

MAX_OFFSET_MS = 366 * 86_400_000


class Index:
    """Checks arguments, then calls the store's index.

    Instants that look like another unit, such as 1_700_000_000, are refused; `any_instant=True` accepts any year.
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
        """Count rows, or those due by an instant, up to `most`. The cost grows with the count."""
        until = None if due_by is None else _ms(due_by, "due_by", any_instant)
        return await self._store.count(due_by=until, most=None if most is None else check_limit(most))

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        return await self._store.set_aside(check_limit(limit))

    async def count_set_aside(self) -> int:
        return await self._store.count_set_aside()

    async def restore(self) -> int:
        return await self._store.restore()

    async def walk(self, cursor: str | None = None, limit: int = 1000) -> tuple[list[IndexRow], str | None]:
        """Return a page of readable rows, in no order, and the cursor of the next page, None at the end.

        On DynamoDB, a row that moves meanwhile may be returned twice.
        """
        if cursor is not None and not isinstance(cursor, str):
            raise invalid_walk_cursor(cursor)
        return await self._store.walk(cursor, check_limit(limit))


def _ms(instant: int | datetime, name: str, any_instant: bool) -> int:
    return to_any_ms(instant, name) if any_instant else to_ms(instant, name, remedy="; any_instant=True takes it as it is")


def _checked(row: object, position: int, any_instant: bool) -> IndexRow:
    """Return the row with its instants in milliseconds. Refuses values that no store could keep or advance."""
    name = f"rows[{position}]"
    if not isinstance(row, IndexRow):
        raise InvalidInput(f"{name}: is a {type(row).__name__}: pass an IndexRow")
    check_name("owner", row.owner)
    check_name("key", row.key)
    if type(row.when) not in KINDS:
        raise InvalidInput(
            f"{name}.when: is a {type(row.when).__name__}: pass a When, such as parse_when({str(row.when)[:80]!r})"
        )
    if isinstance(row.offset_ms, bool) or not isinstance(row.offset_ms, int) or not 0 <= row.offset_ms <= MAX_OFFSET_MS:
        raise InvalidInput(f"{name}.offset_ms: {row.offset_ms!r} is not a number of milliseconds from 0 to {MAX_OFFSET_MS}")
    if row.managed is not False:
        raise InvalidInput(f"{name}.managed: only `schedules` writes managed rows: leave it out")
    next_fire_at = _ms(row.next_fire_at, f"{name}.next_fire_at", any_instant)
    ends_at = None if row.ends_at is None else _ms(row.ends_at, f"{name}.ends_at", any_instant)
    return replace(row, next_fire_at=next_fire_at, ends_at=ends_at)
