"""The contract of a *when*: a value that determines at which instants something happens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import NoReturn

from tickler.clock import SystemClock, datetime_ms, to_ms
from tickler.errors import InvalidInput
from tickler.when.zones import load_zone

LAST_SHOWN_MS = 253_370_764_800_000  # the end of the year 9998, which datetime can show in every zone


def not_ms(value: object) -> InvalidInput:
    """Return the error for an instant that is not an int."""
    return InvalidInput(
        f"{value!r} is a {type(value).__name__}: pass whole milliseconds since the epoch; upcoming(after=…) takes aware datetimes"
    )


class When(ABC):
    """A set of instants, in integer milliseconds since the epoch. Immutable, hashable, comparable.

    Pure: only `upcoming` reads a clock. The canonical text and the zone are the identity: `parse_when(str(w), tz=w.tz) == w`.
    Unlike other values it is not a Struct, because constructors take what people write and keep what computes fast.
    """

    __slots__ = ("_text", "tz")
    tz: str
    _text: str

    @abstractmethod
    def next_after(self, after_ms: int) -> int | None:
        """Return the first instant strictly after `after_ms`, or None."""

    @abstractmethod
    def last_before(self, until_ms: int) -> int | None:
        """Return the latest instant <= `until_ms`, or None. Computed directly, not by stepping through instants."""

    @abstractmethod
    def shortest_interval_ms(self) -> int | None:
        """Return the shortest distance between two instants on the wall clock; None if there is at most one instant."""

    def upcoming(self, n: int = 5, after: int | datetime | None = None) -> list[datetime]:
        """Return the next `n` instants as aware datetimes in this zone. `after` defaults to now."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InvalidInput(f"n: {n!r} is not a number of instants: pass 0 or more")
        if isinstance(after, datetime):
            at = datetime_ms(after, "after")
        else:
            at = SystemClock().now_ms() if after is None else to_ms(after, "after")
        zone = load_zone(self.tz).info
        found: list[datetime] = []
        while len(found) < n:
            following = self.next_after(at)
            if following is None or following > LAST_SHOWN_MS:
                break
            at = following
            found.append(datetime.fromtimestamp(at // 1000, zone).replace(microsecond=at % 1000 * 1000))
        return found

    def _freeze(self, text: str, tz: str, **computed: object) -> None:
        """Set the attributes that the constructor computed. They cannot be set afterwards."""
        for name, value in {"_text": text, "tz": tz, **computed}.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable: make another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._text == self._text and other.tz == self.tz

    def __hash__(self) -> int:
        return hash((self._text, self.tz))
