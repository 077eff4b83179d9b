"""Columns of a schedule, as both SQL stores select them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_schedule

# s: the schedule, i: its row in the index, a: its row outside it.
COLUMNS = """
    s.owner, s.key, s.when_text, s.tz, s.enabled, s.version, s.created_at, s.updated_at, {body},
    i.next_fire_at, a.state, a.reason
"""


def read_schedule(row: Iterable[Any]) -> StoredSchedule:
    """Return the schedule of a row with `COLUMNS`."""
    owner, key, when_text, tz, enabled, version, created_at, updated_at, body, next_fire_at, aside, reason = row
    return stored_schedule(
        owner=owner,
        key=key,
        when_text=when_text,
        tz=tz,
        enabled=bool(enabled),
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        body=body,
        next_fire_at=next_fire_at,
        aside=aside,
        reason=reason,
    )
