"""Connections that were begun: what slothpost remembers of one while its user is at the network."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

import msgspec

from slothpost.errors import InvalidField
from slothpost.model import ChannelName
from slothpost.utc_now import utc_now
from tickler import Tickler

LIFETIME = timedelta(minutes=10)
KIND = "slothpost-connection"


class PendingConnection(msgspec.Struct, frozen=True, kw_only=True):
    """Who connects an account of which network, for which product. `verifier` is what PKCE compares."""

    user: str
    network: ChannelName
    product: str | None
    verifier: str

    def __repr__(self) -> str:
        return f"<PendingConnection of {self.user} to {self.network}>"


class PendingConnections:
    """Begins and takes connections by their state: random, for one user, for ten minutes, and once."""

    def __init__(self, t: Tickler) -> None:
        self._t = t

    async def begin(self, user: str, network: ChannelName, product: str | None) -> tuple[str, PendingConnection]:
        """Return a state for the network to give back, and what it stands for. Only a hash of the state is stored."""
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        encrypted = self._t.encryption.encrypt(verifier, purpose=_purpose(user, network))
        stored = {"user": user, "network": network, "product": product, "verifier": encrypted}
        until = utc_now(self._t) + LIFETIME
        await self._t.records.put(KIND, _name(state), stored, expires_at=until, expected=0)
        return state, PendingConnection(user=user, network=network, product=product, verifier=verifier)

    async def take(self, user: str, state: str) -> PendingConnection:
        """Return what a state stands for, once, and to its user only; otherwise `InvalidField`."""
        record = await self._t.records.get(KIND, _name(state))
        if record is None:
            raise _refused()
        stored = msgspec.convert(record.value, PendingConnection)
        if stored.user != user or not await self._t.records.delete(KIND, record.name):
            raise _refused()
        verifier = self._t.encryption.decrypt(stored.verifier, purpose=_purpose(user, stored.network))
        return msgspec.structs.replace(stored, verifier=verifier)


def _refused() -> InvalidField:
    return InvalidField("state", "this connection was finished, is older than 10 minutes, or is not yours: begin it again")


def _name(state: str) -> str:
    return hashlib.sha256(state.encode(errors="replace")).hexdigest()


def _purpose(user: str, network: ChannelName) -> str:
    return f"slothpost: PKCE verifier of {user} for {network}"
