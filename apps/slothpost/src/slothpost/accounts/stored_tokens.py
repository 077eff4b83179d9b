"""The tokens of an account as they are stored: encrypted, for this account of this user only."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict

from slothpost.model import Account
from slothpost.networks.network import TokenPair, TokenRejected
from tickler import Tickler
from tickler.errors import DecryptionFailed
from tickler.table import MISSING, Missing


class TokenAttributes(TypedDict):
    """What an `Account` keeps of a pair."""

    access_token: str
    refresh_token: str | Missing
    expires_at: datetime | Missing
    obtained_at: datetime


class StoredTokens:
    """Encrypts the tokens of accounts, and decrypts them."""

    def __init__(self, t: Tickler) -> None:
        self._t = t

    def attributes(self, user: str, account_id: str, pair: TokenPair, asked_at: datetime) -> TokenAttributes:
        """Return a pair as attributes of an account. Its lifetime is counted from when it was asked for."""

        def encrypted(kind: Literal["access", "refresh"], token: str) -> str:
            return self._t.encryption.encrypt(token, purpose=_purpose(kind, user, account_id))

        return TokenAttributes(
            access_token=encrypted("access", pair.access),
            refresh_token=MISSING if pair.refresh is None else encrypted("refresh", pair.refresh),
            expires_at=MISSING if pair.lifetime is None else asked_at + pair.lifetime,
            obtained_at=asked_at,
        )

    def access(self, account: Account) -> str:
        return self._decrypted("access", account, account.access_token)

    def pair(self, account: Account) -> TokenPair:
        """Return what a network needs for a refresh."""
        refresh = None
        if account.refresh_token is not MISSING:
            refresh = self._decrypted("refresh", account, account.refresh_token)
        return TokenPair(access=self.access(account), refresh=refresh, lifetime=None)

    def _decrypted(self, kind: Literal["access", "refresh"], account: Account, encrypted: str) -> str:
        """Decrypt a token. `TokenRejected` if that is impossible: nobody can use it any more."""
        try:
            return self._t.encryption.decrypt(encrypted, purpose=_purpose(kind, account.user, account.id))
        except DecryptionFailed:
            raise TokenRejected("its tokens cannot be decrypted with the key of this installation") from None


def _purpose(kind: Literal["access", "refresh"], user: str, account_id: str) -> str:
    return f"slothpost: {kind} token of {account_id} of {user}"
