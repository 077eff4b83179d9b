"""AWS's Signature Version 4 of a POST without a query, which is all that we ever ask with.

By hand, since botocore's general one was the largest part of a request in a profile; the tests compare the two
(docs/decisions/0007).
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
    """What a signature is good for."""

    region: str
    service: str
    host: str


def canonical_path(path: str) -> str:
    """How a path is signed by every service but S3: as it is sent, percent-encoded once more."""
    return quote(path, safe="/~")


def signed(
    headers: Mapping[str, str], body: bytes, credentials: Credentials, scope: Scope, at: datetime, path: str = "/"
) -> dict[str, str]:
    """The headers, all of them signed, and the signature. Names of `headers` are in lower case; `path` is the canonical one."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    signing = {**headers, "host": scope.host, "x-amz-date": stamp}
    if credentials.token:  # an empty one is none, as with AWS's own tools
        signing["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signing))
    canonical_headers = "".join(f"{name}:{signing[name]}\n" for name in sorted(signing))
    canonical = f"POST\n{path}\n\n{canonical_headers}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    reach = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{reach}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.digest(_key(credentials.secret_key, reach), to_sign.encode(), "sha256").hex()
    signing["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{reach}, SignedHeaders={names}, Signature={signature}"
    )
    return signing


@lru_cache(maxsize=32)
def _key(secret_key: str, reach: str) -> bytes:
    """The same for a day, a region and a service."""
    key = f"AWS4{secret_key}".encode()
    for part in reach.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
