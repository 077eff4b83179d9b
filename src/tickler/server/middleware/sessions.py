"""Who is at the web page: a signed cookie names the token they showed once, and forms carry proof that they are ours.

A session that was signed out is remembered in the store until its cookie would have ended anyway.
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
LASTS_S = 12 * 3600
REMEMBERED_MS = 2_500  # so long a session that was signed out elsewhere may still be taken; a stream looks every two seconds
MAX_REMEMBERED = 10_000

_VALUE = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{32})\.(\d{1,12})\.([0-9a-f]{64})")


class Session(msgspec.Struct, frozen=True):
    """What a cookie of ours says."""

    token_id: str
    id: str
    until_s: int

    def __str__(self) -> str:
        return f"{self.token_id}.{self.id}.{self.until_s}"


class Sessions:
    """Signs with a key that all servers of a store share; it is made by the first of them."""

    def __init__(self, records: RecordStore, clock: Clock, settings: ServerSettings) -> None:
        self._records = records
        self._clock = clock
        self._secure = settings.secure_cookie
        self._known_key: bytes | None = None
        self._known: dict[str, tuple[int, bool]] = {}  # by id: until when, and whether it goes on

    async def cookie_for(self, token_id: str) -> str:
        """The value of `set-cookie` for a new session."""
        session = Session(token_id, secrets.token_hex(16), self._clock.now_ms() // 1000 + LASTS_S)
        return self._set(f"{session}.{await self._mac('session', str(session))}", LASTS_S)

    def no_cookie(self) -> str:
        return self._set("", 0)

    async def find(self, cookies: str) -> Session | None:
        """From the header `cookie`, if there is a cookie of ours that goes on."""
        for value in _values(cookies):
            parts = _VALUE.fullmatch(value)
            if parts is None:
                continue
            session = Session(parts[1], parts[2], int(parts[3]))
            if hmac.compare_digest(await self._mac("session", str(session)), parts[4]) and await self.goes_on(session):
                return session
        return None

    async def goes_on(self, session: Session) -> bool:
        """Whether its time is not over and nobody has signed out of it. What was found is remembered for a few seconds."""
        now_ms = self._clock.now_ms()
        if session.until_s * 1000 <= now_ms:
            return False
        known_until, goes_on = self._known.get(session.id, (0, False))
        if now_ms >= known_until:
            goes_on = await self._records.get(SERVER, _ended(session), now_ms=now_ms) is None
            self._remember(session, goes_on)
        return goes_on

    async def end(self, session: Session) -> None:
        """Sign out: nobody gets in by this cookie any more, wherever a copy of it is. Other processes may lag by five seconds."""
        until_ms = session.until_s * 1000
        await self._records.put(SERVER, _ended(session), b"true", now_ms=self._clock.now_ms(), expires_at=until_ms)
        self._remember(session, False)

    async def form_token(self, asking: str) -> str:
        """What a form of ours carries: for whoever is asking, and for nobody else."""
        return await self._mac("form", asking)

    async def is_form_token(self, text: str, asking: str) -> bool:
        return hmac.compare_digest((await self.form_token(asking)).encode(), text.encode())

    def _remember(self, session: Session, goes_on: bool) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[session.id] = (self._clock.now_ms() + REMEMBERED_MS, goes_on)

    def _set(self, value: str, lasts_s: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"

    async def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(await self._key(), f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()

    async def _key(self) -> bytes:
        if self._known_key is None:
            now_ms = self._clock.now_ms()
            fresh = msgspec.json.encode(base64.b64encode(os.urandom(32)).decode())
            with suppress(VersionConflict):  # another server was here before
                await self._records.put(SERVER, "cookie-key", fresh, now_ms=now_ms, expected=0)
            record = await self._records.get(SERVER, "cookie-key", now_ms=now_ms)
            assert record is not None
            self._known_key = base64.b64decode(str(record.value))
        return self._known_key


def _ended(session: Session) -> str:
    return f"signed-out-{session.id}"


def _values(cookies: str) -> list[str]:
    """Of our cookie; those of other apps on the same host may look as they like."""
    pairs = (each.partition("=") for each in cookies.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
