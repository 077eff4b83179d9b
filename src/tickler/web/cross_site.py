"""Detects requests that another site made a browser send. Browsers say so; programs send neither header."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tickler.web.problems import Refused


def check_same_origin(headers: Mapping[str, str], schemes: Collection[str] = ("http", "https")) -> None:
    """Refuse with 403 a request of another origin. Call it for every request that changes something."""
    if not is_same_origin(headers, schemes):
        raise Refused(403, "cross-site request: open the page itself, or send no Origin")


def is_same_origin(headers: Mapping[str, str], schemes: Collection[str] = ("http", "https")) -> bool:
    """False if `sec-fetch-site` or `origin` names another origin than `host`, whose scheme is one of `schemes`."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    return origin is None or origin.lower() in {f"{scheme}://{host}" for scheme in schemes}
