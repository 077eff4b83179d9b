"""Who is at the web page: a signed cookie names the token they showed once, and forms carry proof that they are ours."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie

import msgspec

from tickler.clock import Clock
from tickler.errors import VersionConflict
from tickler.records import RecordStore
from tickler.server.settings import ServerSettings

COOKIE = "tickler_session"
LASTS_S = 12 * 3600

_VALUE = re.compile(r"([0-9a-f]{16})\.(\d{1,12})\.([0-9a-f]{64})")


class Sessions:
    """Signs with a key that all servers of a store share; it is made by the first of them."""

    def __init__(self, records: RecordStore, clock: Clock, settings: ServerSettings) -> None:
        self._records = records
        self._clock = clock
        self._secure = settings.secure_cookie
        self._known_key: bytes | None = None

    async def cookie_for(self, token_id: str) -> str:
        """The value of `set-cookie`."""
        until = self._clock.now_ms() // 1000 + LASTS_S
        value = f"{token_id}.{until}.{await self._mac('session', f'{token_id}.{until}')}"
        return self._set(value, LASTS_S)

    def no_cookie(self) -> str:
        return self._set("", 0)

    async def token_id(self, cookies: str) -> str | None:
        """Of the token that was shown, from the header `cookie`, if the cookie is ours and in time."""
        try:
            morsel = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return None
        parts = _VALUE.fullmatch(morsel.value) if morsel is not None else None
        if parts is None or int(parts[2]) * 1000 <= self._clock.now_ms():
            return None
        right = await self._mac("session", f"{parts[1]}.{parts[2]}")
        return parts[1] if hmac.compare_digest(right, parts[3]) else None

    async def form_token(self, token_id: str | None) -> str:
        """What a form of ours carries, for this session alone; a session without a token is this machine's."""
        return await self._mac("form", token_id or "local")

    async def is_form_token(self, text: str, token_id: str | None) -> bool:
        return hmac.compare_digest((await self.form_token(token_id)).encode(), text.encode())

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
                await self._records.put("server", "cookie-key", fresh, now_ms=now_ms, expected=0)
            record = await self._records.get("server", "cookie-key", now_ms=now_ms)
            assert record is not None
            self._known_key = base64.b64decode(str(record.value))
        return self._known_key
