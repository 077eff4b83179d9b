"""Signs what is delivered, as Standard Webhooks 1.0 says, so that receivers in any language can check it.

A secret is `whsec_` and the base64 of 24 to 64 random bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Sequence
from functools import lru_cache

from tickler.errors import InvalidInput

PREFIX = "whsec_"
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64

_REMEDY = (
    f"pass one that tickler.new_secret() made, or {PREFIX!r} and the base64 of {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} random "
    "bytes"
)


def sign(secrets: Sequence[str], id: str, timestamp_s: int, body: bytes) -> str:
    """The value of the header `webhook-signature`: one signature a secret, so that receivers can have either while rotating."""
    if not secrets:
        raise InvalidInput("secrets: is empty, and nothing is sent unsigned: pass at least one")
    content = b"%b.%d.%b" % (id.encode(), timestamp_s, body)
    return " ".join([_signature(secret, content) for secret in secrets])


def is_signed(signatures: str, secrets: Sequence[str], id: str, timestamp_s: int, body: bytes) -> bool:
    """Whether one of the header's signatures is by one of the secrets. What is of another version is passed over.

    Each is compared with each, whatever came out before, so that the time it takes tells nothing.
    """
    ours = [signature.encode() for signature in sign(secrets, id, timestamp_s, body).split(" ")]
    theirs = [signature.encode("ascii", "replace") for signature in signatures.split(" ") if signature.startswith("v1,")]
    matches = [hmac.compare_digest(mine, each) for mine in ours for each in theirs]
    return any(matches)


def _signature(secret: str, content: bytes) -> str:
    keyed_inner, keyed_outer = _keyed(secret)
    inner, outer = keyed_inner.copy(), keyed_outer.copy()
    inner.update(content)
    outer.update(inner.digest())
    return "v1," + binascii.b2a_base64(outer.digest(), newline=False).decode()


@lru_cache(maxsize=4096)
def _keyed(secret: str) -> tuple[hashlib._Hash, hashlib._Hash]:
    """HMAC's inner and outer hash with the key in them, which is no longer than their block: a third of the work an attempt."""
    key = key_of(secret).ljust(64, b"\0")
    return hashlib.sha256(bytes(each ^ 0x36 for each in key)), hashlib.sha256(bytes(each ^ 0x5C for each in key))


def new_secret() -> str:
    """A new one, of 32 random bytes."""
    return PREFIX + base64.b64encode(os.urandom(32)).decode()


def check_secret(text: object) -> str:
    """The secret as it was given, with or without its prefix; `InvalidInput`, which never repeats it, when it is none."""
    if not isinstance(text, str):
        raise InvalidInput(f"secret: is a {type(text).__name__}, not text: {_REMEDY}")
    key_of(text)
    return text


@lru_cache(maxsize=4096)
def key_of(secret: str) -> bytes:
    """The bytes that sign."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"secret: is not base64: {_REMEDY}") from None
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise InvalidInput(f"secret: has {len(key)} bytes: {_REMEDY}")
    return key
