"""Recent attempts of workers, published through the store while a dashboard is open."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickler.model.fire import Entry, StoredHappened
from tickler.model.record import value_of
from tickler.records.contract import RecordStore
from tickler.records.kinds import ACTIVITY

WATCHED = "watched"  # the record that exists while a dashboard is open; the others are named after workers
WATCHED_MS = 15_000
ACTIVITY_RETENTION_MS = 60_000
MAX_EVENTS = 50
MAX_WORKERS = 200
MAX_DETAIL_LENGTH = 300


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An attempt as dashboards show it: its entry in the history without the answer."""

    owner: str
    key: str
    fire_id: str | None = None
    nominal_at: int
    at: int
    attempt: int
    happened: StoredHappened
    status: int = 0
    duration_ms: int = 0
    detail: str | None = None
    gave_up: bool = False


class WorkerActivity(msgspec.Struct, frozen=True):
    """The last events of a worker; `number` counts all its events up to now."""

    number: int
    events: list[Event]


def event_of(entry: Entry) -> Event:
    return Event(
        owner=entry.owner,
        key=entry.key,
        fire_id=entry.fire_id,
        nominal_at=entry.nominal_at,
        at=entry.at,
        attempt=entry.attempt,
        happened=entry.happened,
        status=entry.status or 0,
        duration_ms=entry.duration_ms or 0,
        detail=None if entry.detail is None else entry.detail[:MAX_DETAIL_LENGTH],
        gave_up=entry.gave_up,
    )


async def mark_watched(records: RecordStore, now_ms: int) -> None:
    """Record that a dashboard is open, for 15 seconds."""
    await records.put(ACTIVITY, WATCHED, b"true", now_ms=now_ms, expires_at=now_ms + WATCHED_MS)


async def is_watched(records: RecordStore, now_ms: int) -> bool:
    return await records.get(ACTIVITY, WATCHED, now_ms=now_ms) is not None


async def publish(records: RecordStore, worker: str, number: int, events: Sequence[Event], now_ms: int) -> None:
    value = msgspec.json.encode(WorkerActivity(number, list(events)[-MAX_EVENTS:]))
    await records.put(ACTIVITY, worker, value, now_ms=now_ms, expires_at=now_ms + ACTIVITY_RETENTION_MS)


async def read_activity(records: RecordStore, now_ms: int) -> dict[str, WorkerActivity]:
    """Return the recent activity of each worker."""
    found = await records.list(ACTIVITY, now_ms=now_ms, limit=MAX_WORKERS)
    values = {record.name: value_of(record, WorkerActivity) for record in found if record.name != WATCHED}
    return {worker: heard for worker, heard in values.items() if heard is not None}
