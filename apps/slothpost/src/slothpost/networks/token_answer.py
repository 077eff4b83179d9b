"""The tokens in the answer of a network, whose lifetimes may be anything."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from slothpost.networks.network import TokenPair
from slothpost.networks.request import Answer

MAX_LIFETIME_S = 366 * 86_400


class _Tokens(msgspec.Struct):
    access_token: str
    refresh_token: str | None = None
    expires_in: int | None = None


def read_tokens(answer: Answer) -> TokenPair | None:
    """Return the tokens, None if there are none that can be read."""
    try:
        tokens = msgspec.json.decode(answer.body, type=_Tokens)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return TokenPair(access=tokens.access_token, refresh=tokens.refresh_token, lifetime=lifetime_of(tokens.expires_in))


def lifetime_of(seconds: int | None) -> timedelta | None:
    """Return how long a token lives, as far as that can be believed: an instant that nothing can store would lose the token."""
    return None if seconds is None else timedelta(seconds=min(max(seconds, 0), MAX_LIFETIME_S))
