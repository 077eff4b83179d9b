"""Where a language model is reached: at an address of the operator, or at one that a user gave."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from slothpost.errors import InvalidField

MAX_URL, MAX_KEY, MAX_MODEL = 300, 500, 200


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The address of an API, the model to ask and the key to ask with. Local servers need no key.

    `is_guarded`: a user gave the address, so it may not lead into this server's own network.
    """

    url: str
    model: str
    key: str | None = None
    is_guarded: bool = False

    def __repr__(self) -> str:
        return f"<Endpoint of {self.model} at {self.url}>"  # the key is for no log

    def path(self, path: str) -> str:
        return f"{self.url.rstrip('/')}{path}"


def checked_endpoint(*, url: str, model: str, key: str | None) -> Endpoint:
    """Return an endpoint that a user gave; `InvalidField` if it cannot be one."""
    url, model, key = url.strip(), model.strip(), (key or "").strip() or None
    if not _is_api_address(url):
        raise InvalidField("url", "it is not an address of an API: it looks like https://api.example.com/v1")
    if not model or len(model) > MAX_MODEL or not model.isprintable():
        raise InvalidField("model", "write the name of the model as its provider lists it")
    if key is not None and (len(key) > MAX_KEY or not key.isascii() or not key.isprintable() or " " in key):
        raise InvalidField("key", "it is not an API key: it has blanks, line breaks or letters that no key has")
    return Endpoint(url=url, model=model, key=key, is_guarded=True)


def _is_api_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are none of an IPv6 address
        return False
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    return is_web and not parts.query and not parts.fragment and len(url) <= MAX_URL and url.isprintable()
