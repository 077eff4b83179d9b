"""The part of ASGI that this package uses. It works in any framework that speaks ASGI, and imports none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

# A request's scope and messages hold values of many types, by name: that is how ASGI defines them.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]  # frameworks have types of their own for scope, receive and send

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})  # they change nothing


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request by name, which ASGI writes in lower case; of a repeated one, the first.

    Cookies are joined: over HTTP/2, browsers send each in a header of its own.
    """
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
    if "cookie" in found:
        found["cookie"] = b"; ".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
    return found
