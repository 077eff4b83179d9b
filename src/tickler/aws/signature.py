"""AWS Signature Version 4 of a POST without a query string, the only kind of request that we send.

Our own code, because botocore's general implementation took most of a request's time in a profile. The tests compare
the two (docs/decisions/0007).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote


class Credentials(NamedTuple):
    access_key: str
    secret_key: str
    token: str | None


class Scope(NamedTuple):
    """The service and region that a signature is valid for."""

    region: str
    service: str
    host: str


def canonical_path(path: str) -> str:
    """Return the path as every service but S3 signs it: the path as sent, percent-encoded once more."""
    return quote(path, safe="/~")


def signed(
    headers: Mapping[str, str], body: bytes, credentials: Credentials, scope: Scope, at: datetime, path: str = "/"
) -> dict[str, str]:
    """Return `headers`, all of them signed, with the signature added. Their names are lower-case; `path` is canonical."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    signing = {**headers, "host": scope.host, "x-amz-date": stamp}
    if credentials.token:  # an empty token counts as none, as in AWS's own tools
        signing["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signing))
    canonical_headers = "".join(f"{name}:{signing[name]}\n" for name in sorted(signing))
    canonical = f"POST\n{path}\n\n{canonical_headers}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    credential_scope = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{credential_scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.digest(_key(credentials.secret_key, credential_scope), to_sign.encode(), "sha256").hex()
    signing["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{credential_scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signing


@lru_cache(maxsize=32)
def _key(secret_key: str, credential_scope: str) -> bytes:
    """Derive the signing key, which stays the same for a day, a region and a service."""
    key = f"AWS4{secret_key}".encode()
    for part in credential_scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
