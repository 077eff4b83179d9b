"""Codes for links that work once and expire: to sign in, to accept an invitation. The store has only a hash of each."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta

import msgspec

from tickler.clock import Clock
from tickler.errors import InvalidInput
from tickler.model.duration import Duration, to_duration
from tickler.model.record import Record
from tickler.records.contract import RecordStore
from tickler.web.subjects import check_subject

DEFAULT_LIFETIME = timedelta(minutes=30)
MAX_LIFETIME = timedelta(days=30)
MAX_SUBJECT_BYTES = 1_024

_CODE = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 random bits


class OneTimeLinks:
    """Creates codes for a subject, and redeems each of them once, whichever process is asked.

    Programs that scan mail open links. Therefore show a page with a button at the link's address (`find`), and redeem the code
    when its form is sent.
    """

    def __init__(self, records: RecordStore, clock: Clock, *, record_kind: str) -> None:
        self._records = records
        self._clock = clock
        self._kind = record_kind

    async def create(self, subject: str, *, purpose: str = "sign-in", lifetime: Duration = DEFAULT_LIFETIME) -> str:
        """Return a code. It is valid for its purpose only, and cannot be shown again."""
        check_subject(subject, MAX_SUBJECT_BYTES)
        lasts = to_duration("lifetime", lifetime, MAX_LIFETIME)
        if not lasts:
            raise InvalidInput("lifetime: must be longer than 0: pass seconds or a timedelta")
        code = secrets.token_urlsafe(32)
        now_ms = self._clock.now_ms()
        until_ms = now_ms + round(lasts.total_seconds() * 1000)
        value = msgspec.json.encode(subject)
        await self._records.put(self._kind, _name(code, purpose), value, now_ms=now_ms, expires_at=until_ms, expected=0)
        return code

    async def find(self, code: str, *, purpose: str = "sign-in") -> str | None:
        """Return the subject of a code that can be redeemed, without using it up."""
        record = await self._record(code, purpose)
        return None if record is None else str(record.value)

    async def redeem(self, code: str, *, purpose: str = "sign-in") -> str | None:
        """Use a code up, and return its subject; None if it is unknown, expired or used. Of two calls one gets the subject."""
        record = await self._record(code, purpose)
        if record is None or not await self._records.delete(self._kind, record.name):
            return None
        return str(record.value)

    async def _record(self, code: str, purpose: str) -> Record | None:
        if not _CODE.fullmatch(code):
            return None
        return await self._records.get(self._kind, _name(code, purpose), now_ms=self._clock.now_ms())


def _name(code: str, purpose: str) -> str:
    """Look codes up by their hash: how long it takes says nothing about the code."""
    return "link-" + hashlib.sha256("\0".join((purpose, code)).encode()).hexdigest()
