"""Browser sessions: a signed cookie names the token that was used to sign in, and forms carry CSRF tokens.

A session that was signed out is kept in the store until its cookie expires.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress

import msgspec

from tickler.clock import Clock
from tickler.errors import VersionConflict
from tickler.records.contract import RecordStore
from tickler.records.kinds import SERVER
from tickler.server.settings import ServerSettings

COOKIE = "tickler_session"
LIFETIME_S = 12 * 3600
CACHE_MS = 2_500  # a session signed out in another process may be accepted this long; event streams check every two seconds
MAX_CACHED = 10_000

_VALUE = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{32})\.(\d{1,12})\.([0-9a-f]{64})")


class Session(msgspec.Struct, frozen=True):
    """The content of a session cookie."""

    token_id: str
    id: str
    until_s: int

    def __str__(self) -> str:
        return f"{self.token_id}.{self.id}.{self.until_s}"


class Sessions:
    """Signs cookies with a key that all servers of a store share; the first of them creates it."""

    def __init__(self, records: RecordStore, clock: Clock, settings: ServerSettings) -> None:
        self._records = records
        self._clock = clock
        self._secure = settings.secure_cookie
        self._cached_key: bytes | None = None
        self._cache: dict[str, tuple[int, bool]] = {}  # by id: valid until, and whether the session is active

    async def cookie_for(self, token_id: str) -> str:
        """Start a session; return its `set-cookie` value."""
        session = Session(token_id, secrets.token_hex(16), self._clock.now_ms() // 1000 + LIFETIME_S)
        return self._set(f"{session}.{await self._mac('session', str(session))}", LIFETIME_S)

    def expired_cookie(self) -> str:
        return self._set("", 0)

    async def find(self, cookies: str) -> Session | None:
        """Return the active session of a `cookie` header, if there is one."""
        for value in _values(cookies):
            parts = _VALUE.fullmatch(value)
            if parts is None:
                continue
            session = Session(parts[1], parts[2], int(parts[3]))
            if hmac.compare_digest(await self._mac("session", str(session)), parts[4]) and await self.is_active(session):
                return session
        return None

    async def is_active(self, session: Session) -> bool:
        """True if it has not expired or been signed out. The result is cached for `CACHE_MS`."""
        now_ms = self._clock.now_ms()
        if session.until_s * 1000 <= now_ms:
            return False
        cached_until, is_active = self._cache.get(session.id, (0, False))
        if now_ms >= cached_until:
            is_active = await self._records.get(SERVER, _ended(session), now_ms=now_ms) is None
            self._put_in_cache(session, is_active)
        return is_active

    async def end(self, session: Session) -> None:
        """Sign out: every copy of the cookie becomes invalid, in other processes within five seconds."""
        until_ms = session.until_s * 1000
        await self._records.put(SERVER, _ended(session), b"true", now_ms=self._clock.now_ms(), expires_at=until_ms)
        self._put_in_cache(session, False)

    async def form_token(self, client_id: str) -> str:
        """Return the CSRF token of a client's forms."""
        return await self._mac("form", client_id)

    async def is_form_token(self, text: str, client_id: str) -> bool:
        return hmac.compare_digest((await self.form_token(client_id)).encode(), text.encode())

    def _put_in_cache(self, session: Session, is_active: bool) -> None:
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[session.id] = (self._clock.now_ms() + CACHE_MS, is_active)

    def _set(self, value: str, lasts_s: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"

    async def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(await self._key(), f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()

    async def _key(self) -> bytes:
        if self._cached_key is None:
            now_ms = self._clock.now_ms()
            fresh = msgspec.json.encode(base64.b64encode(os.urandom(32)).decode())
            with suppress(VersionConflict):  # another server created it first
                await self._records.put(SERVER, "cookie-key", fresh, now_ms=now_ms, expected=0)
            record = await self._records.get(SERVER, "cookie-key", now_ms=now_ms)
            assert record is not None
            self._cached_key = base64.b64decode(str(record.value))
        return self._cached_key


def _ended(session: Session) -> str:
    return f"signed-out-{session.id}"


def _values(cookies: str) -> list[str]:
    """Return the values of our cookie, and ignore those of other apps on the host."""
    pairs = (each.partition("=") for each in cookies.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
