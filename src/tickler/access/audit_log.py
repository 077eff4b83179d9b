"""The audit log: every change that a person or a program made through the API, the page or the command line.

The history of fires records what the engine did; this log records what callers asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets

import msgspec

from tickler.clock import Clock
from tickler.model.cursor import decode_record_name
from tickler.model.fire import HISTORY_RETENTION_MS
from tickler.model.limits import check_limit
from tickler.model.record import value_of
from tickler.model.schedule import check_name
from tickler.records.contract import RecordStore
from tickler.records.kinds import AUDIT

MAX_DETAIL_CHARACTERS = 500

_END = 10**15  # record names count down from here, so that the latest comes first


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. `action` is a verb such as "put" or "retried".

    `by` is a display name, which several tokens may share. `token_id` is unique, and None for changes made without a token.
    """

    at: int
    by: str
    action: str
    token_id: str | None = None
    owner: str | None = None
    key: str | None = None
    detail: str | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Entries, latest first. `next` is the cursor of the page with earlier ones, None at the end."""

    items: list[AuditEntry]
    next: str | None


class AuditLog:
    """Keeps each entry as a record: in the log of all, and in the log of the owner it concerns."""

    def __init__(self, records: RecordStore, clock: Clock, retention_ms: int = HISTORY_RETENTION_MS) -> None:
        self._records = records
        self._clock = clock
        self._retention_ms = retention_ms

    async def record(
        self,
        by: str,
        action: str,
        *,
        owner: str | None = None,
        key: str | None = None,
        detail: str | None = None,
        token_id: str | None = None,
    ) -> None:
        """Write an entry with the present time. `detail` is cut to `MAX_DETAIL_CHARACTERS`."""
        now_ms = self._clock.now_ms()
        value = msgspec.json.encode(
            AuditEntry(at=now_ms, by=by, action=action, token_id=token_id, owner=owner, key=key, detail=_shortened(detail))
        )
        name = f"{_END - now_ms:015d}-{secrets.token_hex(6)}"
        kinds = [AUDIT] if owner is None else [AUDIT, _kind_of(owner)]
        await asyncio.gather(
            *(self._records.put(kind, name, value, now_ms=now_ms, expires_at=now_ms + self._retention_ms) for kind in kinds)
        )

    async def list(self, *, owner: str | None = None, limit: int = 100, after: str | None = None) -> AuditPage:
        """Return entries latest first, of one owner or of all. `after` is the `next` of an earlier page."""
        check_limit(limit)
        if owner is not None:
            check_name("owner", owner)
        start = "" if after is None else decode_record_name(after)
        kind = AUDIT if owner is None else _kind_of(owner)
        found = await self._records.list(kind, now_ms=self._clock.now_ms(), after=start, limit=limit + 1)
        items = found[:limit]
        following = items[-1].name if len(found) > limit else None
        return AuditPage([entry for record in items if (entry := value_of(record, AuditEntry)) is not None], following)


def _kind_of(owner: str) -> str:
    """Hash the owner, so that the kind stays short however long the owner's name is."""
    return f"{AUDIT}-{hashlib.blake2b(owner.encode(), digest_size=16).hexdigest()}"


def _shortened(detail: str | None) -> str | None:
    return detail if detail is None or len(detail) <= MAX_DETAIL_CHARACTERS else f"{detail[: MAX_DETAIL_CHARACTERS - 1]}…"
