"""The signatures of webhook deliveries, over the raw body as it arrived."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

GITHUB_PREFIX = "sha256="
APPSTORE_PREFIX = "hmacsha256="


def github_signature(secret: str, body: bytes) -> str:
    """Return what GitHub sends as `X-Hub-Signature-256`."""
    return GITHUB_PREFIX + _hmac(secret, body, "sha256")


def vercel_signature(secret: str, body: bytes) -> str:
    """Return what Vercel sends as `x-vercel-signature`: SHA-1, without a prefix."""
    return _hmac(secret, body, "sha1")


def appstore_signature(secret: str, body: bytes) -> str:
    """Return what Apple sends as `x-apple-signature`."""
    return APPSTORE_PREFIX + _hmac(secret, body, "sha256")


def is_from_github(secret: str, body: bytes, given: str | None) -> bool:
    return _matches(given, [github_signature(secret, body)] if secret else [])


def is_from_vercel(secrets: Iterable[str], body: bytes, given: str | None) -> bool:
    """Tell whether one of several secrets signed a body: that of the integration, or of a webhook of the account."""
    return _matches(given, [vercel_signature(secret, body) for secret in secrets if secret])


def is_from_appstore(secret: str, body: bytes, given: str | None) -> bool:
    """Accept the digest with its prefix and without, since Apple's documentation has both."""
    if given is not None and not given.startswith(APPSTORE_PREFIX):
        given = APPSTORE_PREFIX + given
    return _matches(given, [appstore_signature(secret, body)] if secret else [])


def _hmac(secret: str, body: bytes, digest: str) -> str:
    return hmac.digest(secret.encode(), body, digest).hex()


def _matches(given: str | None, expected: Iterable[str]) -> bool:
    """Compare with each candidate in constant time, and with all of them, so that the time tells nothing."""
    compared = (given or "").encode(errors="replace")
    found = False
    for each in expected:
        found |= hmac.compare_digest(each.encode(), compared)
    return found
