"""How a runner works: as a value."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import force_setattr, replace

from tickler.deliver.fair_queue import SlotLimit
from tickler.errors import InvalidInput
from tickler.model.duration import Duration, to_duration

MIN_LEASE = timedelta(seconds=5)
DEFAULT_LEASE = timedelta(seconds=10)
UNKEPT_LEASE = timedelta(seconds=60)  # the default where no thread keeps leases: a busy event loop has 40 s to come back
MAX_AHEAD = timedelta(seconds=10)


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Durations are timedeltas, or seconds when passed in; kept as timedeltas.

    With `ahead`, what is due so soon is claimed already and held until its instant: more punctual by what a claim takes. If the
    worker dies meanwhile, what is delivered at least once is delivered by another when the lease ends; what is delivered at most
    once is lost, although its instant had not come yet.
    """

    in_flight: int = 100  # attempts at the same time
    per_owner: int = 25  # of them, of one owner
    per_host: int = 50  # of them, to one host
    queued: int = 2_000  # claimed and not started: so many that one owner's flood does not hide the others
    lease: timedelta = DEFAULT_LEASE  # how long after a worker's death another takes over
    drain: timedelta = timedelta(seconds=30)  # how long attempts may still take when the runner is told to stop
    ahead: timedelta = timedelta(0)
    longest: timedelta = timedelta(minutes=15)  # an attempt, whatever its schedule allows

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            in_flight: int = 100,
            per_owner: int = 25,
            per_host: int = 50,
            queued: int = 2_000,
            lease: Duration = DEFAULT_LEASE,
            drain: Duration = 30,
            ahead: Duration = 0,
            longest: Duration = 900,
        ) -> None: ...

    @property
    def slots(self) -> SlotLimit:
        """Of all attempts at once, some are kept for owners that have nothing in flight."""
        return self._shared_out(self.in_flight)

    @property
    def places_of_a_host(self) -> SlotLimit:
        """The same of those to one host: most owners have theirs in common."""
        return self._shared_out(self.per_host)

    def without_keeper(self) -> RunOptions:
        """For a worker whose leases nobody extends while its event loop is busy: a longer lease, unless one was chosen."""
        return replace(self, lease=UNKEPT_LEASE) if self.lease is DEFAULT_LEASE else self  # a lease that was passed is another

    def _shared_out(self, total: int) -> SlotLimit:
        """A fifth is reserved, as far as one owner alone may not take all of it."""
        return SlotLimit(total, min(total // 5, max(total - self.per_owner, 0)))

    def __post_init__(self) -> None:
        for name in ("in_flight", "per_owner", "per_host", "queued"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
                raise InvalidInput(f"{name}: {value!r} is not a whole number from 1 to 100000")
        for name in ("lease", "drain", "ahead", "longest"):
            force_setattr(self, name, to_duration(name, getattr(self, name), timedelta(days=1)))
        if self.lease < MIN_LEASE:
            raise InvalidInput(
                f"lease: {self.lease} is shorter than {MIN_LEASE.seconds} s: others would take over from the living"
            )
        if not self.longest:
            raise InvalidInput("longest: is 0: no attempt could be made; give it some seconds")
        if self.ahead > MAX_AHEAD:
            raise InvalidInput(f"ahead: {self.ahead} is longer than {MAX_AHEAD.seconds} s: claim later")
