"""Stored text that this worker cannot read, kept to be shown."""

from __future__ import annotations

from tickler.when.when import When


class Unreadable(When):
    """A when without instants. Text and zone are as stored; `reason` says why they cannot be read."""

    __slots__ = ("reason",)
    reason: str

    def __init__(self, text: str, tz: str, reason: str) -> None:
        self._freeze(text, tz, reason=reason)

    def next_after(self, after_ms: int) -> int | None:
        return None

    def last_before(self, until_ms: int) -> int | None:
        return None

    def shortest_interval_ms(self) -> int | None:
        return None

    def __repr__(self) -> str:
        return f"Unreadable({self._text!r}, tz={self.tz!r}, reason={self.reason!r})"

    def __reduce__(self) -> tuple[type[Unreadable], tuple[str, str, str]]:
        return Unreadable, (self._text, self.tz, self.reason)
