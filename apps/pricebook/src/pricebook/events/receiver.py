"""Where events are sent to."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from pricebook.errors import InvalidField

LEGACY = "legacy:"
_NAME_LENGTH = 12


class Receiver(Struct, frozen=True):
    """An address that gets signed events. With `legacy`, it gets what readers of the first pricing service know instead."""

    url: str
    legacy: bool = False

    @classmethod
    def read(cls, text: str) -> Receiver:
        """Read an address as settings have it: `https://…`, or `legacy:https://…` for a reader of legacy events."""
        url = text.strip().removeprefix(LEGACY)
        if not url.startswith(("http://", "https://")):
            raise InvalidField("receiver", f"{text[:80]!r} does not begin with http:// or https://: write an address")
        return cls(url, legacy=text.strip().startswith(LEGACY))

    @property
    def owner(self) -> str:
        """Whose sends they are, and whose secret signs them."""
        kind = "legacy-events" if self.legacy else "events"
        return f"{kind}/{hashlib.sha256(self.url.encode()).hexdigest()[:_NAME_LENGTH]}"
