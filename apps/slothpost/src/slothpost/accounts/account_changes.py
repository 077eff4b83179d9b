"""The changes of a stored account that several processes may try at once. Each is one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from slothpost.accounts.stored_tokens import StoredTokens
from slothpost.model import NETWORK_NAMES, Account
from slothpost.networks.network import TokenPair
from slothpost.notices import News, Notices
from slothpost.utc_now import utc_now
from tickler import StoreUnavailable, Tickler
from tickler.table import MISSING, OpenTable, Transaction, evolve

LEASE = timedelta(minutes=1)  # how long one process has the tokens of an account for itself
KEEP_DELAYS_S = (0.1, 0.5, 2.0)  # new tokens that are not stored are lost for good


class Locked(msgspec.Struct, frozen=True):
    """An account as it is stored, None if it was deleted; and whether this call has locked it."""

    account: Account | None
    is_ours: bool


class AccountChanges:
    """Locks an account for a refresh, stores new tokens, and marks a connection as broken."""

    def __init__(self, t: Tickler, db: OpenTable, notices: Notices) -> None:
        self._t = t
        self._db = db
        self._notices = notices
        self._stored = StoredTokens(t)

    def now(self) -> datetime:
        return utc_now(self._t)

    async def read(self, user: str, id: str) -> Account | None:
        return await self._db.get(Account.key.id(user, id))

    async def lock(self, account: Account, is_due: Callable[[Account, datetime], bool]) -> Locked:
        """Read an account, and lock it for `LEASE` if it is due and nobody else has it. Of calls at once, one locks it."""

        async def work(tx: Transaction) -> Locked:
            stored = await tx.get(account.key)
            now = self.now()
            if stored is None or is_locked(stored, now) or not is_due(stored, now):
                return Locked(stored, is_ours=False)
            tx.put(evolve(stored, refreshing_until=now + LEASE))
            return Locked(stored, is_ours=True)

        return await self._db.transact(work)

    async def unlock(self, account: Account) -> None:
        """Let the next one refresh at once: the network has not taken the refresh token."""

        async def work(tx: Transaction) -> None:
            stored = await tx.get(account.key)
            if stored is not None and stored.access_token == account.access_token:
                tx.put(evolve(stored, refreshing_until=MISSING))

        await self._db.transact(work)

    async def keep(self, account: Account, pair: TokenPair, asked_at: datetime) -> bool:
        """Store new tokens in place of those of `account`, and end the lock. False if these are no longer stored."""

        async def work(tx: Transaction) -> bool:
            stored = await tx.get(account.key)
            if stored is None or stored.access_token != account.access_token:
                return False
            attributes = self._stored.attributes(account.user, account.id, pair, asked_at)
            tx.put(evolve(stored, **attributes, refreshing_until=MISSING))
            return True

        for delay_s in KEEP_DELAYS_S:
            try:
                return await self._db.transact(work)
            except StoreUnavailable:
                await asyncio.sleep(delay_s)
        return await self._db.transact(work)

    async def mark_broken(self, account: Account, reason: str) -> bool:
        """Note that an account must be connected again, and tell its user in the same transaction. True the first time.

        False as well if it was connected again meanwhile: what a network says of earlier tokens is no longer of interest.
        """

        async def work(tx: Transaction) -> bool:
            stored = await tx.get(account.key)
            if stored is None or stored.broken is not MISSING or stored.connected_at != account.connected_at:
                return False
            tx.put(evolve(stored, broken=reason, refreshing_until=MISSING))
            text = f"{NETWORK_NAMES[stored.network]}: @{stored.handle} must be connected again: {reason}"
            id = f"reconnect-{stored.id}-{stored.version}"
            await self._notices.add(tx, News(user=stored.user, kind="reconnect", text=text, id=id))
            return True

        return await self._db.transact(work)


def is_locked(account: Account, now: datetime) -> bool:
    """Return whether somebody refreshes its tokens. A process that dies leaves the lock, which ends by itself."""
    return account.refreshing_until is not MISSING and account.refreshing_until > now
