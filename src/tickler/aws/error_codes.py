"""Error codes that AWS services share, without namespace and suffix."""

from __future__ import annotations

THROTTLED = frozenset({"Throttling", "ThrottlingError", "RequestLimitExceeded", "LimitExceeded"})
REFUSED_CREDENTIALS = frozenset(
    {"UnrecognizedClient", "InvalidSignature", "MissingAuthenticationToken", "AccessDenied", "IncompleteSignature"}
)
EXPIRED_CREDENTIALS = frozenset({"ExpiredToken", "TokenRefreshRequired"})


def plain_code(code: str) -> str:
    """Remove the namespace before `#`, and the suffix `Exception`, which some responses have and others lack."""
    return code.rpartition("#")[2].removesuffix("Exception")
