"""Sessions of browsers: a signed cookie names a subject, such as the id of a user.

The store keeps only what has ended: a session that was signed out, and the subjects whose sessions were all ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from tickler.clock import Clock
from tickler.errors import InvalidInput, VersionConflict
from tickler.records.contract import RecordStore
from tickler.web.signing_key import SigningKey
from tickler.web.subjects import check_subject

SameSite = Literal["Lax", "Strict"]

CACHE_MS = 2_500  # a session ended in another process may be accepted this long; event streams check every two seconds
MAX_CACHED = 10_000
MAX_LIFETIME_S = 400 * 86_400  # browsers keep no cookie longer
MAX_SUBJECT_BYTES = 256
HOST_PREFIX = "__Host-"  # browsers accept such a cookie only over https, for this host alone, and for all of its paths

_VALUE = re.compile(r"([A-Za-z0-9_.~%-]{1,768})\.([0-9a-f]{32})\.(\d{1,12})\.([0-9a-f]{64})")
_COOKIE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PURPOSE = "session"
_RENEWED = b'"renewed"'  # in place of true, what the store keeps of a session that another one continues
_GENERATION = 12  # so many digits at the start of a session's id say before which end of all sessions it began


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The cookie's name and attributes. Two applications on one host need two names."""

    cookie: str = "session"
    lifetime_s: int = 12 * 3600
    secure: bool = False  # set it if the page is served over https
    same_site: SameSite = "Lax"

    def __post_init__(self) -> None:
        if not _COOKIE.fullmatch(self.cookie):
            raise InvalidInput(f"cookie: {self.cookie!r} is invalid: use up to 64 letters, digits, - and _")
        if self.cookie.startswith(("__Host-", "__Secure-")) and not self.secure:
            raise InvalidInput(f"cookie: browsers accept {self.cookie} over https only: pass secure=True, or drop the prefix")
        if not 1 <= self.lifetime_s <= MAX_LIFETIME_S:
            raise InvalidInput(f"lifetime_s: {self.lifetime_s} is not between 1 second and 400 days")
        if self.same_site not in ("Lax", "Strict"):
            raise InvalidInput(f"same_site: {self.same_site!r} is invalid: use 'Lax' or 'Strict'")


class Session(msgspec.Struct, frozen=True):
    """The content of a session cookie."""

    subject: str
    id: str
    until_s: int

    def __str__(self) -> str:
        return f"{quote(self.subject, safe='')}.{self.id}.{self.until_s}"


class Sessions:
    """Starts, finds and ends sessions. Every start makes a new id, so that no id from before the sign-in stays valid."""

    def __init__(self, records: RecordStore, clock: Clock, settings: SessionSettings, *, record_kind: str) -> None:
        self._records = records
        self._clock = clock
        self._key = SigningKey(records, clock, record_kind)
        self._settings = settings
        self._kind = record_kind
        self._cache: dict[str, tuple[int, bool]] = {}  # by id: valid until, and whether the session is active

    async def cookie_for(self, subject: str) -> str:
        """Start a session; return its `set-cookie` value."""
        check_subject(subject, MAX_SUBJECT_BYTES)
        generation = await self._generation(subject, self._clock.now_ms()) or secrets.token_hex(_GENERATION // 2)
        return await self._start(subject, generation)

    def expired_cookie(self) -> str:
        """Return the `set-cookie` value that removes the cookie."""
        return self._set("", 0)

    async def find(self, cookies: str) -> Session | None:
        """Return the active session of a `cookie` header, if there is one."""
        for value in _values(cookies, self._settings.cookie):
            parts = _VALUE.fullmatch(value)
            if parts is None:
                continue
            session = Session(unquote(parts[1]), parts[2], int(parts[3]))
            if await self._key.is_signature(parts[4], _PURPOSE, str(session)) and await self.is_active(session):
                return session
        return None

    async def is_active(self, session: Session) -> bool:
        """True if it has not expired or been ended. The result is cached for `CACHE_MS`."""
        now_ms = self._clock.now_ms()
        if session.until_s * 1000 <= now_ms:
            return False
        cached_until, is_active = self._cache.get(session.id, (0, False))
        if now_ms >= cached_until:
            ended, generation = await asyncio.gather(
                self._records.get(self._kind, _ended(session), now_ms=now_ms), self._generation(session.subject, now_ms)
            )
            is_active = ended is None and (generation is None or session.id.startswith(generation))
            self._put_in_cache(session, is_active)
        return is_active

    async def end(self, session: Session) -> None:
        """Sign out: every copy of the cookie becomes invalid, in other processes within five seconds."""
        until_ms = session.until_s * 1000
        await self._records.put(self._kind, _ended(session), b"true", now_ms=self._clock.now_ms(), expires_at=until_ms)
        self._put_in_cache(session, False)

    async def end_all(self, subject: str) -> None:
        """Sign a subject out everywhere: all sessions that began before this become invalid, as by `end`."""
        check_subject(subject, MAX_SUBJECT_BYTES)
        now_ms = self._clock.now_ms()
        generation = msgspec.json.encode(secrets.token_hex(_GENERATION // 2))
        until_ms = now_ms + MAX_LIFETIME_S * 1000  # all of them have expired by then
        await self._records.put(self._kind, _all_ended(subject), generation, now_ms=now_ms, expires_at=until_ms)
        self._cache.clear()

    async def renew(self, session: Session) -> str:
        """Replace a session by one with a new id and the whole lifetime; return its `set-cookie` value.

        A session that was ended, also in another process a moment ago, stays so: the value removes the cookie.
        """
        until_ms, now_ms = session.until_s * 1000, self._clock.now_ms()
        try:
            await self._records.put(self._kind, _ended(session), _RENEWED, now_ms=now_ms, expires_at=until_ms, expected=0)
        except VersionConflict:
            ended = await self._records.get(self._kind, _ended(session), now_ms=now_ms)
            if ended is None or ended.value != msgspec.json.decode(_RENEWED):  # two requests may renew one session at once
                return self.expired_cookie()
        self._put_in_cache(session, False)
        return await self._start(session.subject, session.id[:_GENERATION])  # which `end_all` ends with the old one

    async def _start(self, subject: str, generation: str) -> str:
        lifetime_s = self._settings.lifetime_s
        id = generation + secrets.token_hex(16 - _GENERATION // 2)
        session = Session(subject, id, self._clock.now_ms() // 1000 + lifetime_s)
        return self._set(f"{session}.{await self._key.sign(_PURPOSE, str(session))}", lifetime_s)

    async def _generation(self, subject: str, now_ms: int) -> str | None:
        """Return how the ids of the subject's valid sessions start; None if its sessions were never all ended."""
        record = await self._records.get(self._kind, _all_ended(subject), now_ms=now_ms)
        return None if record is None else str(record.value)

    def _put_in_cache(self, session: Session, is_active: bool) -> None:
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[session.id] = (self._clock.now_ms() + CACHE_MS, is_active)

    def _set(self, value: str, lasts_s: int) -> str:
        settings = self._settings
        secure = "; Secure" if settings.secure else ""
        return f"{settings.cookie}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite={settings.same_site}{secure}"


def _ended(session: Session) -> str:
    return f"signed-out-{session.id}"


def _all_ended(subject: str) -> str:
    return f"all-signed-out-{hashlib.sha256(subject.encode(errors='replace')).hexdigest()}"


def _values(cookies: str, cookie: str) -> list[str]:
    """Return the values of our cookie, and ignore those of other apps on the host."""
    pairs = (each.partition("=") for each in cookies.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == cookie]
