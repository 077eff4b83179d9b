"""Columns of a schedule, and lists of schedules, as both SQL stores select them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tickler.model.schedule import Id, State, StoredSchedule
from tickler.model.schedule_json import stored_schedule
from tickler.stores.sql.database import Database

# s: the schedule, i: its row in the index, a: its row outside it. The order is that of `stored_schedule`.
COLUMNS = """
    SELECT s.owner, s.key, s.when_text, s.tz, s.enabled, s.version, s.created_at, s.updated_at, {body},
        i.next_fire_at, a.state, a.reason
"""
INDEX_AND_ASIDE = """
    LEFT JOIN {schema}.tickler_index i ON i.owner = s.owner AND i.key = s.key
    LEFT JOIN {schema}.tickler_aside a ON a.owner = s.owner AND a.key = s.key
"""
JOINED = f"{COLUMNS} FROM {{schema}}.tickler_schedules s {INDEX_AND_ASIDE}"
# Each state is listed from a table or index that has only that state, so that a page costs what it shows.
_FROM_ASIDE = f"""
    {COLUMNS}
    FROM {{schema}}.tickler_aside a
    JOIN {{schema}}.tickler_schedules s ON s.owner = a.owner AND s.key = a.key
    LEFT JOIN {{schema}}.tickler_index i ON i.owner = a.owner AND i.key = a.key
    WHERE {{enabled}} AND i.owner IS NULL
"""
_FROM_INDEX = f"""
    {COLUMNS}
    FROM {{schema}}.tickler_index i
    JOIN {{schema}}.tickler_schedules s ON s.owner = i.owner AND s.key = i.key
    LEFT JOIN {{schema}}.tickler_aside a ON false
    WHERE {{enabled}}
"""
_LISTED_FROM: Mapping[State | None, tuple[str, str]] = {
    None: ("s", f"{JOINED} WHERE true"),
    "paused": ("s", f"{JOINED} WHERE {{paused}}"),
    "active": ("i", _FROM_INDEX),
    "finished": ("a", f"{_FROM_ASIDE} AND a.state = 'finished'"),
    "unreadable": ("a", f"{_FROM_ASIDE} AND a.state = 'unreadable'"),
    "unindexed": ("s", f"{JOINED} WHERE {{enabled}} AND i.owner IS NULL AND a.owner IS NULL"),
}
# The second condition is redundant; it lets SQLite use the partial index of fires that are not open.
FAILING = "SELECT owner, key FROM {schema}.tickler_fires WHERE state = 'dead' AND state <> 'open'"


def read_schedule(row: Iterable[Any]) -> StoredSchedule:
    """Return the schedule of a row with `COLUMNS`."""
    owner, key, when_text, tz, enabled, *others = row
    return stored_schedule(owner, key, when_text, tz, bool(enabled), *others)


class SqlScheduleReads:
    """Lists schedules. `dialect` says how a database selects a `body`, and tests that a schedule is `enabled` or `paused`."""

    def __init__(self, database: Database, dialect: Mapping[str, str]) -> None:
        self._fetch = database.fetch
        self._dialect = {"schema": "{schema}", **dialect}

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        by, query = _LISTED_FROM[state]
        parameters: list[object] = [limit]
        if owner is not None:
            parameters.append(owner)
            query += f" AND {by}.owner = ${len(parameters)}"
        if after is not None:
            parameters += after
            query += f" AND ({by}.owner, {by}.key) > (${len(parameters) - 1}, ${len(parameters)})"
        if failing:
            query += f" AND ({by}.owner, {by}.key) IN ({FAILING})"
        ordered = f"{query} ORDER BY {by}.owner, {by}.key LIMIT $1".format_map(self._dialect)
        return [read_schedule(row) for row in await self._fetch(ordered, *parameters)]
