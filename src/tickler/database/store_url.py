"""Parsed store URLs."""

from __future__ import annotations

from collections.abc import Mapping

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
