"""Reads due rows of the index with their schedules, for a claim."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from operator import attrgetter

import msgspec

from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import DueSchedule
from tickler.index.advance import ROW_FORMAT
from tickler.model.fire import MAX_CLAIM_BYTES
from tickler.stores.sqlite.rows import as_json

_COLUMNS = """
    i.id, i.owner, i.key, i.when_text, i.tz, i.next_fire_at, i.ends_at, i.offset_ms, i.managed,
    s.version, s.created_at, s.updated_at
"""
_DUE = """
    FROM tickler_index i CROSS JOIN tickler_schedules s ON s.owner = i.owner AND s.key = i.key
    WHERE i.has_target = 1 AND i.next_fire_at <= ? AND i.format <= ? {others}
    ORDER BY i.next_fire_at
    LIMIT ?
"""
SELECT_DUE = f"SELECT {_COLUMNS}, CAST(s.body AS BLOB) {_DUE}"
# As one JSON text, without bodies that are larger than the first parameter.
_SELECT_AT_ONCE = f"""
    SELECT CAST(json_group_array(json_array(
        id, owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, version, created_at, updated_at,
        CASE WHEN size <= ? THEN body END, size
    )) AS BLOB)
    FROM (SELECT {_COLUMNS}, s.body, length(CAST(s.body AS BLOB)) AS size {_DUE})
"""
_EXCEPT_OWNERS = "AND i.owner NOT IN (SELECT value FROM json_each(?))"


class _SizedSchedule(DueSchedule, array_like=True, gc=False):
    body: str  # a body that was left out does not decode
    size: int


_decode = msgspec.json.Decoder(list[_SizedSchedule], strict=False).decode  # SQLite has numbers for booleans
_in_order = attrgetter("next_fire_at")


def read_due(
    connection: sqlite3.Connection, until_ms: int, limit: int, except_owners: Collection[str], budget: ByteBudget
) -> list[DueSchedule]:
    """Return due rows, earliest first, as far as they fit into the budget.

    Small rows come as one text: at each row of a cursor, the interpreter lock goes to the event loop and has to be won back. If
    one is large, they come one by one, and none after those that fit.
    """
    others = _EXCEPT_OWNERS if except_owners else ""
    parameters = (until_ms, ROW_FORMAT, *([as_json(list(except_owners))] if except_owners else []), limit)
    try:
        (rows,) = connection.execute(_SELECT_AT_ONCE.format(others=others), (MAX_CLAIM_BYTES // limit, *parameters)).fetchone()
        return list(budget.fitting(sorted(_decode(rows), key=_in_order), attrgetter("size")))
    except (sqlite3.OperationalError, msgspec.DecodeError, UnicodeError):  # a large body, or one that is no text
        with closing(connection.execute(SELECT_DUE.format(others=others), parameters)) as cursor:
            return budget.fitting((DueSchedule(*row) for row in cursor), lambda row: len(row.body))
