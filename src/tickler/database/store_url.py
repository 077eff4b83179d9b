"""Parsed store URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

import msgspec

from tickler.errors import InvalidInput


class StoreUrl(msgspec.Struct, frozen=True):
    """A parsed URL: `scheme://location?parameters`. `text` is the URL without its password, for messages."""

    text: str
    scheme: str
    location: str
    parameters: Mapping[str, str]

    def __repr__(self) -> str:
        return f"StoreUrl({self.text!r})"

    def refuse_unknown(self, *known: str) -> None:
        for name in self.parameters:
            if name not in known:
                raise InvalidInput(f"{self.text}: unknown parameter {name!r}: use {', '.join(known) or 'none'}")

    def seconds(self, name: str, default: float) -> float:
        text = self.parameters.get(name)
        try:
            seconds = default if text is None else float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= 3600:
            raise InvalidInput(f"{self.text}: {name}={text!r} is not a number of seconds from 0 to 3600")
        return seconds

    def whole(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number, or None where the URL has none."""
        text = self.parameters.get(name)
        if text is None:
            return None
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        if not least <= number <= most:
            raise InvalidInput(f"{self.text}: {name}={text!r} is not a whole number from {least} to {most}")
        return number


def parse_url(url: str) -> StoreUrl:
    if not isinstance(url, str) or "://" not in url:
        raise InvalidInput("not a store's URL: write one such as 'sqlite:///tickler.db' or 'postgresql://user@host/database'")
    scheme, _, rest = url.partition("://")
    location, _, query = rest.partition("?")
    return StoreUrl(_without_password(url), scheme, location, dict(parse_qsl(query, keep_blank_values=True)))


def _without_password(url: str) -> str:
    url = re.sub(r"(://[^:/?#@]*):.*@", r"\1:…@", url, flags=re.DOTALL)  # to the last @: a password may contain any character
    return re.sub(r"(password=)[^&]*", r"\1…", url, flags=re.IGNORECASE)
