"""The tokens of the local Threads: codes, tokens of an hour, and tokens of sixty days."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from slothpost.networks.network import TokenPair
from slothpost.standins.graph_answers import EXPIRED_TOKEN, INVALID_TOKEN, GraphFault, invalid

CODE_LIFETIME = timedelta(hours=1)
SHORT_LIFETIME = timedelta(hours=1)
LONG_LIFETIME = timedelta(seconds=5_183_944)
YOUNGEST_REFRESH = timedelta(hours=24)
ALL_SCOPES = frozenset({"threads_basic", "threads_content_publish"})


class Code(msgspec.Struct, frozen=True):
    handle: str
    scopes: frozenset[str]
    redirect_uri: str
    until: datetime


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    handle: str
    scopes: frozenset[str]
    at: datetime
    lifetime: timedelta

    def is_valid(self, now: datetime) -> bool:
        return now < self.at + self.lifetime


class ThreadsTokens:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._codes: dict[str, Code] = {}
        self._tokens: dict[str, IssuedToken] = {}

    def authorize(self, handle: str, scopes: frozenset[str], redirect_uri: str) -> str:
        """Return a code."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = Code(handle, scopes, redirect_uri, self._now() + CODE_LIFETIME)
        return code

    def exchange_code(self, code: str, redirect_uri: str) -> tuple[str, str] | None:
        """Return a token of an hour and whose it is. A code can be tried once."""
        found = self._codes.pop(code, None)
        if found is None or found.redirect_uri != redirect_uri or self._now() >= found.until:
            return None
        return self._issue(found.handle, found.scopes, SHORT_LIFETIME), found.handle

    def extend(self, token: str) -> TokenPair | GraphFault:
        """Return a token of sixty days for one of an hour."""
        found = self.find(token)
        if isinstance(found, GraphFault):
            return found
        if found.lifetime != SHORT_LIFETIME:
            return invalid("Session key invalid. This could be because the token is long-lived already.")
        return self._long(found.handle, found.scopes)

    def refresh(self, token: str) -> TokenPair | GraphFault:
        """Return another token of sixty days. The old one stays valid as long as it would have been."""
        found = self.find(token)
        if isinstance(found, GraphFault):
            return found
        if found.lifetime == SHORT_LIFETIME or self._now() - found.at < YOUNGEST_REFRESH:
            return invalid("Only long-lived tokens that are at least 24 hours old can be refreshed.")
        return self._long(found.handle, found.scopes)

    def issue(self, handle: str) -> TokenPair:
        return self._long(handle, ALL_SCOPES)

    def find(self, token: str) -> IssuedToken | GraphFault:
        found = self._tokens.get(token)
        if found is None:
            return INVALID_TOKEN
        return found if found.is_valid(self._now()) else EXPIRED_TOKEN

    def revoke_all(self, handle: str | None = None) -> None:
        self._tokens = {token: found for token, found in self._tokens.items() if handle not in (None, found.handle)}

    def _long(self, handle: str, scopes: frozenset[str]) -> TokenPair:
        return TokenPair(access=self._issue(handle, scopes, LONG_LIFETIME), refresh=None, lifetime=LONG_LIFETIME)

    def _issue(self, handle: str, scopes: frozenset[str], lifetime: timedelta) -> str:
        token = f"TH{secrets.token_hex(60)}"
        self._tokens[token] = IssuedToken(handle=handle, scopes=scopes, at=self._now(), lifetime=lifetime)
        return token
