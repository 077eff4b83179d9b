"""Paths that a sign-in may lead back to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode


def local_path(path: str | None, default: str = "/") -> str:
    """Return a path of this site; the default in place of another site's address."""
    if path is None or not path.startswith("/") or path.startswith(("//", "/\\")):
        return default
    place, mark, query = path.partition("?")
    return quote(place, safe="/%") + mark + quote(query, safe="%&=+")


def requested_path(scope: Mapping[str, Any], *, without: str = "") -> str | None:
    """Return the requested path as it was written; None for a form, as its change must be sent again.

    The parameter `without` is left out of the query.
    """
    if scope["method"] != "GET":
        return None
    path = (scope.get("raw_path") or quote(scope["path"]).encode()).partition(b"?")[0].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    kept = "&".join(each for each in query.split("&") if each and not (without and each.startswith(f"{without}=")))
    return f"{path}?{kept}" if kept else path


def with_query(path: str, **query: str | None) -> str:
    """Append the parameters that have a value to a path."""
    given = urlencode({name: value for name, value in query.items() if value})
    return f"{path}{'&' if '?' in path else '?'}{given}" if given else path
