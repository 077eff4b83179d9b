"""The tokens of the local X: codes that live for seconds, and families of tokens of which one pair is valid."""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from slothpost.networks.network import TokenPair

CODE_LIFETIME = timedelta(seconds=30)
ACCESS_LIFETIME = timedelta(hours=2)
REFRESH_LIFETIME = timedelta(days=182)
ALL_SCOPES = frozenset({"tweet.read", "tweet.write", "users.read", "offline.access"})


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has allowed, until its code is exchanged."""

    handle: str
    scopes: frozenset[str]
    client_id: str
    redirect_uri: str
    challenge: str
    until: datetime


class Family(msgspec.Struct, kw_only=True):
    """All pairs that follow from one grant. `is_alive` ends for all of them at once."""

    handle: str
    scopes: frozenset[str]
    is_alive: bool = True
    access: str = ""
    refresh: str = ""
    access_until: datetime
    refresh_until: datetime


class XTokens:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._grants: dict[str, Grant] = {}
        self._families: list[Family] = []
        self._by_token: dict[str, Family] = {}  # also tokens that were replaced

    def authorize(self, grant: Grant) -> str:
        """Return a code."""
        code = secrets.token_urlsafe(32)
        self._grants[code] = grant
        return code

    def exchange(self, code: str, client_id: str, redirect_uri: str, verifier: str) -> TokenPair | None:
        """Return the first pair; None unless code, client, redirect and verifier belong together. A code can be tried once."""
        grant = self._grants.pop(code, None)
        if grant is None or self._now() >= grant.until:
            return None
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if (grant.client_id, grant.redirect_uri, grant.challenge) != (client_id, redirect_uri, challenge):
            return None
        return self.issue(grant.handle, grant.scopes)

    def issue(self, handle: str, scopes: frozenset[str] = ALL_SCOPES) -> TokenPair:
        now = self._now()
        family = Family(handle=handle, scopes=scopes, access_until=now, refresh_until=now)
        self._families.append(family)
        return self._next_pair(family)

    def refresh(self, token: str) -> TokenPair | None:
        """Return the next pair. A refresh token that was used before ends its family."""
        family = self._by_token.get(token)
        if family is None or not family.is_alive or self._now() >= family.refresh_until:
            return None
        if token != family.refresh:
            family.is_alive = False
            return None
        return self._next_pair(family)

    def find(self, access: str) -> Family | None:
        """Return whose a valid access token is."""
        family = self._by_token.get(access)
        is_valid = family is not None and family.is_alive and access == family.access and self._now() < family.access_until
        return family if is_valid else None

    def revoke_all(self, handle: str | None = None) -> None:
        for family in self._families:
            if handle in (None, family.handle):
                family.is_alive = False

    def _next_pair(self, family: Family) -> TokenPair:
        now = self._now()
        family.access, family.refresh = secrets.token_urlsafe(48), secrets.token_urlsafe(48)
        family.access_until, family.refresh_until = now + ACCESS_LIFETIME, now + REFRESH_LIFETIME
        self._by_token[family.access] = self._by_token[family.refresh] = family
        refresh = family.refresh if "offline.access" in family.scopes else None
        return TokenPair(access=family.access, refresh=refresh, lifetime=ACCESS_LIFETIME)
