"""Who did what: every change that a person or a program made through the API, the page or the command line, the latest first.

What happened to fires by itself is in the history; here is what somebody wanted.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets

import msgspec

from tickler.clock import Clock
from tickler.errors import InvalidInput
from tickler.model.fire import HISTORY_RETENTION_MS
from tickler.model.limits import check_limit
from tickler.model.record import value_of
from tickler.model.schedule import check_name
from tickler.records.contract import RecordStore
from tickler.records.kinds import AUDIT

MAX_DETAIL_CHARACTERS = 500

_END = 10**15  # names count down, so that the latest comes first


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody did something. `did` is a verb such as "put" or "retried".

    Names are given freely, and several tokens may have one: `token_id` says which it was, where it was one.
    """

    at: int
    by: str
    did: str
    token_id: str | None = None
    owner: str | None = None
    key: str | None = None
    detail: str | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Some deeds, and the cursor with which those before them are asked for; None at the end."""

    items: list[AuditEntry]
    next: str | None


class AuditLog:
    """Keeps deeds as records: once for all, and once for the owner they concern, who may see no others."""

    def __init__(self, records: RecordStore, clock: Clock, kept_ms: int = HISTORY_RETENTION_MS) -> None:
        self._records = records
        self._clock = clock
        self._kept_ms = kept_ms

    async def note(
        self,
        by: str,
        did: str,
        *,
        owner: str | None = None,
        key: str | None = None,
        detail: str | None = None,
        token_id: str | None = None,
    ) -> None:
        now_ms = self._clock.now_ms()
        value = msgspec.json.encode(
            AuditEntry(at=now_ms, by=by, did=did, token_id=token_id, owner=owner, key=key, detail=_shortened(detail))
        )
        name = f"{_END - now_ms:015d}-{secrets.token_hex(6)}"
        kinds = [AUDIT] if owner is None else [AUDIT, _kind_of(owner)]
        await asyncio.gather(
            *(self._records.put(kind, name, value, now_ms=now_ms, expires_at=now_ms + self._kept_ms) for kind in kinds)
        )

    async def list(self, *, owner: str | None = None, limit: int = 100, after: str | None = None) -> AuditPage:
        """The latest first; of one owner or all. `after` is a page's `next`."""
        check_limit(limit)
        if owner is not None:
            check_name("owner", owner)
        if after is not None and (len(after) > 40 or not after.replace("-", "").isalnum() or not after.isascii()):
            raise InvalidInput(f"after: {after[:40]!r} is not a cursor: pass the `next` of an earlier page")
        kind = AUDIT if owner is None else _kind_of(owner)
        found = await self._records.list(kind, now_ms=self._clock.now_ms(), after=after or "", limit=limit + 1)
        items = found[:limit]
        following = items[-1].name if len(found) > limit else None
        return AuditPage([deed for record in items if (deed := value_of(record, AuditEntry)) is not None], following)


def _kind_of(owner: str) -> str:
    """Short, however long the owner's name is."""
    return f"{AUDIT}-{hashlib.blake2b(owner.encode(), digest_size=16).hexdigest()}"


def _shortened(detail: str | None) -> str | None:
    return detail if detail is None or len(detail) <= MAX_DETAIL_CHARACTERS else f"{detail[: MAX_DETAIL_CHARACTERS - 1]}…"
