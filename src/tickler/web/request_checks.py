"""Limits the lengths of a request's parts, and refuses headers that two programs could read differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tickler.web.problems import Refused

MAX_QUERY_BYTES = 8_192
MAX_PATH_BYTES = 8_192
MAX_HEADER_BYTES = 32_768

_SINGLE_HEADERS = frozenset({b"host", b"authorization", b"origin", b"content-type"})  # of two, a proxy might read the other one


def check_request(scope: Mapping[str, Any]) -> None:
    """Refuse a request that is too long, or has one of some headers twice."""
    _check_lengths(scope)
    _check_single_headers(scope)


def content_length(scope: Mapping[str, Any]) -> int:
    """Return the announced length of the body; 400 if it is announced in two ways."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
    if length is None:
        return 0
    if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        raise Refused(400, "content-length excludes transfer-encoding: send one", headers={"connection": "close"})
    return int(length[:20]) if length.isdigit() else 0


def _check_single_headers(scope: Mapping[str, Any]) -> None:
    named = [name for name, _ in scope["headers"] if name in _SINGLE_HEADERS]
    if len(named) > len(set(named)):
        repeated = next(name for name in named if named.count(name) > 1).decode()
        raise Refused(400, f"the header {repeated} is sent twice: send one", repeated, headers={"connection": "close"})


def _check_lengths(scope: Mapping[str, Any]) -> None:
    if len(scope["query_string"]) > MAX_QUERY_BYTES:
        raise Refused(414, f"the query is longer than {MAX_QUERY_BYTES} bytes: shorten it")
    if len(scope.get("raw_path") or b"") > MAX_PATH_BYTES:
        raise Refused(414, f"the path is longer than {MAX_PATH_BYTES} bytes: shorten it")
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise Refused(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes: send fewer")
