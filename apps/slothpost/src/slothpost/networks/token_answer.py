"""The tokens in the answer of a network."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from slothpost.networks.network import TokenPair
from slothpost.networks.request import Answer


class _Tokens(msgspec.Struct):
    access_token: str
    refresh_token: str | None = None
    expires_in: int | None = None


def read_tokens(answer: Answer) -> TokenPair | None:
    """Return the tokens, None if there are none that can be read."""
    try:
        tokens = msgspec.json.decode(answer.body, type=_Tokens)
        lifetime = None if tokens.expires_in is None else timedelta(seconds=tokens.expires_in)
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError):
        return None
    return TokenPair(access=tokens.access_token, refresh=tokens.refresh_token, lifetime=lifetime)
