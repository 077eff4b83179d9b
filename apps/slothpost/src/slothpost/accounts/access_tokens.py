"""Hands out the tokens that posts are sent with, and refreshes those that are about to expire."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from slothpost.accounts.account_changes import AccountChanges
from slothpost.accounts.stored_tokens import StoredTokens
from slothpost.model import NETWORK_NAMES, Account
from slothpost.networks.network import (
    Limited,
    Network,
    NetworkError,
    Networks,
    NotSent,
    Refused,
    TokenPair,
    TokenRejected,
    Unclear,
)
from slothpost.notices import Notices
from tickler import RetryLater, Tickler
from tickler.table import MISSING, OpenTable

REFRESH_BEFORE = timedelta(minutes=5)  # tokens that are refreshed lazily have at least this long to live when they are used
CALL_TIME = timedelta(seconds=45)  # a request to a network takes no longer
REFRESH_TIMEOUT_S = 45.0  # shorter than the lock
SOON = timedelta(seconds=1)

YOUNGEST_REFRESH = timedelta(days=1)  # Threads refuses to refresh a younger token
REFRESH_RETRY = timedelta(hours=6)


class TokenBusy(Exception):
    """There is no token that can be used now. Try again at `until`."""

    def __init__(self, detail: str, until: datetime) -> None:
        super().__init__(detail)
        self.until = until


class AccessTokens:
    """The tokens of all accounts.

    Where a refresh token works once (X), the process that needs a token refreshes it: under a lock, and the new pair is stored
    before it is used. On the other networks (Threads), a schedule does, and `refresh_due` is its handler.
    """

    def __init__(self, t: Tickler, db: OpenTable, networks: Networks, notices: Notices) -> None:
        self._networks = networks
        self._changes = AccountChanges(t, db, notices)
        self._stored = StoredTokens(t)

    async def get(self, account: Account) -> str:
        """Return a token that can be used now.

        `TokenBusy` says when to ask again, which is soon. `TokenRejected`: the account must be connected again, which is for
        `mark_broken`. `NotSent`: the network was not reached. `Limited`: it gives no tokens for now.
        """
        network = self._network(account)
        now = self._changes.now()
        if account.broken is not MISSING:
            raise TokenRejected(account.broken)
        if not _expires_within(account, now, REFRESH_BEFORE + CALL_TIME):
            return self._stored.access(account)
        if not network.refreshes_single_use or account.refresh_token is MISSING:
            if _expires_within(account, now, timedelta(0)):
                raise TokenRejected("its token has expired")
            return self._stored.access(account)
        if not _is_due(account, now):
            # Somebody may have this token in use, and a refresh ends it. So nobody gets it from now on, and the refresh waits.
            assert account.expires_at is not MISSING
            raise TokenBusy(f"the token of @{account.handle} is about to be refreshed", account.expires_at - REFRESH_BEFORE)
        return await self._refreshed(account, network)

    async def mark_broken(self, account: Account, reason: str) -> bool:
        """Note that an account must be connected again, and tell its user. True the first time.

        False as well if it was connected again meanwhile: then the posts that wait for it may go on.
        """
        return await self._changes.mark_broken(account, reason)

    async def refresh_due(self, user: str, account_id: str) -> str:
        """Refresh the tokens of an account when its schedule says so, and return what was done, for the history of the fire.

        It is tried again until the tokens expire.
        """
        account = await self._changes.read(user, account_id)
        if account is None:
            return "nothing to do: the account was disconnected"
        if account.broken is not MISSING:
            return f"nothing to do: the account must be connected again: {account.broken}"
        network = self._network(account)
        if network.refreshes_single_use:
            return "nothing to do: these tokens are refreshed when they are needed"
        now = self._changes.now()
        if now - account.obtained_at < YOUNGEST_REFRESH:
            return "nothing to do: the token is new"
        if _expires_within(account, now, timedelta(0)):
            return await self._give_up(account, "its token has expired")
        try:
            pair = await network.refresh(self._stored.pair(account))
        except TokenRejected as error:
            return await self._give_up(account, str(error))
        except NetworkError as error:
            until = max(now + REFRESH_RETRY, error.until) if isinstance(error, Limited) else now + REFRESH_RETRY
            if account.expires_at is MISSING or until < account.expires_at:
                raise RetryLater(at=until, reason=str(error)) from None
            return await self._give_up(account, f"its token expires, and could not be refreshed: {error}")
        is_kept = await self._changes.keep(account, pair, now)
        return "refreshed" if is_kept else "nothing to do: the account was connected anew meanwhile"

    async def _give_up(self, account: Account, reason: str) -> str:
        await self._changes.mark_broken(account, reason)
        return f"@{account.handle} must be connected again: {reason}"

    async def _refreshed(self, account: Account, network: Network) -> str:
        asked_at = self._changes.now()
        locked = await self._changes.lock(account, _is_due)
        found = locked.account
        if found is None:
            raise TokenRejected("it was disconnected meanwhile")
        if not locked.is_ours:
            return self._found(found)
        pair = await self._next_pair(found, network)
        if not await self._changes.keep(found, pair, asked_at):
            raise TokenBusy(f"@{found.handle} was connected anew meanwhile", self._changes.now() + SOON)
        return pair.access

    def _found(self, account: Account) -> str:
        """Return the token of an account that cannot be locked: somebody refreshes it now, or has just done so."""
        if account.broken is not MISSING:
            raise TokenRejected(account.broken)
        if account.refreshing_until is not MISSING and _is_due(account, self._changes.now()):
            raise TokenBusy(f"another process refreshes the token of @{account.handle}", account.refreshing_until)
        return self._stored.access(account)

    async def _next_pair(self, account: Account, network: Network) -> TokenPair:
        """Ask for the next pair. Whatever happens, the lock ends, or the account is broken."""
        name = NETWORK_NAMES[account.network]
        try:
            async with asyncio.timeout(REFRESH_TIMEOUT_S):
                return await network.refresh(self._stored.pair(account))
        except (TimeoutError, Unclear) as error:
            detail = str(error) or f"{name} did not answer"
            reason = f"{detail} while its tokens were renewed, and the old ones may be void"
            await self._changes.mark_broken(account, reason)
            raise TokenRejected(reason) from None
        except (TokenRejected, Refused) as error:
            await self._changes.mark_broken(account, str(error))
            raise TokenRejected(str(error)) from None
        except (Limited, NotSent):
            await self._changes.unlock(account)
            raise

    def _network(self, account: Account) -> Network:
        network = self._networks.get(account.network)
        if network is None:
            raise NotSent(f"{NETWORK_NAMES[account.network]} is not set up in this installation")
        return network


def _expires_within(account: Account, now: datetime, span: timedelta) -> bool:
    return account.expires_at is not MISSING and account.expires_at <= now + span


def _is_due(account: Account, now: datetime) -> bool:
    return account.broken is MISSING and _expires_within(account, now, REFRESH_BEFORE)
