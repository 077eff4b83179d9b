"""The exception that postpones a fire."""

from __future__ import annotations

from datetime import datetime, timedelta

from tickler.clock import to_datetime, to_ms
from tickler.errors import InvalidInput, TicklerError
from tickler.model.duration import Duration, to_duration

MAX_AFTER = timedelta(days=365)

_MS = timedelta(milliseconds=1)


class RetryLater(TicklerError):
    """For handlers and deliverers to raise when it is too early: the fire is attempted again at an instant, or after a duration.

    The attempt is not counted, unless `counts` says so: then it has failed, and the next one follows exactly then, if attempts
    are left. `reason` is shown by *why* and in the history. The instant is at least a second away; a fire that is postponed for
    more than 30 days is dead.
    """

    def __init__(
        self,
        *,
        at: int | datetime | None = None,
        after: Duration | None = None,
        reason: str | None = None,
        counts: bool = False,
    ) -> None:
        if (at is None) == (after is None):
            raise InvalidInput(f"RetryLater needs at or after, and got {'neither' if at is None else 'both'}: pass one of them")
        if reason is not None and not isinstance(reason, str):
            raise InvalidInput(f"reason: {reason!r} is a {type(reason).__name__}: pass a str, or leave it out")
        if not isinstance(counts, bool):
            raise InvalidInput(f"counts: {counts!r} is a {type(counts).__name__}: pass True or False")
        self.at = None if at is None else to_ms(at, "at")
        self.after = None if after is None else to_duration("after", after, MAX_AFTER)
        self.reason = reason
        self.counts = counts
        when = f"again after {self.after}" if self.at is None else f"not before {to_datetime(self.at).isoformat()}"
        super().__init__(when if not reason else f"{when}: {reason}")

    def instant(self, now_ms: int) -> int:
        """Return the instant of the next attempt. `after` counts from `now_ms`, when the attempt ended."""
        if self.at is not None:
            return self.at
        assert self.after is not None
        return now_ms + self.after // _MS
