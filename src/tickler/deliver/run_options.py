"""The options of a run, and the settings of one worker, as values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import force_setattr, replace

from tickler.deliver.fair_queue import SlotLimit
from tickler.errors import InvalidInput
from tickler.model.duration import Duration, to_duration
from tickler.stores.store import Store

MIN_LEASE = timedelta(seconds=5)
DEFAULT_LEASE = timedelta(seconds=10)
UNKEPT_LEASE = timedelta(seconds=60)  # the default where no thread keeps leases: the event loop may block for 40 s
MAX_AHEAD = timedelta(seconds=10)
CLAIM_BATCH = 500  # the most fires of one claim

_MS = timedelta(milliseconds=1)


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Pass durations as timedeltas or seconds; they are kept as timedeltas.

    With `ahead`, fires that are due so soon are claimed already and held until their instant: they start earlier, by the time
    that a claim takes. If the worker dies meanwhile, another delivers the at-least-once fires when the lease ends; at-most-once
    fires are lost, although their instant had not come.
    """

    in_flight: int = 100  # concurrent attempts
    per_owner: int = 25  # concurrent attempts of one owner
    per_host: int = 50  # concurrent attempts to one host
    queued: int = 2_000  # fires claimed and not started: many, so that one owner's flood does not hide the others
    lease: timedelta = DEFAULT_LEASE  # how long after a worker's death another takes over
    drain: timedelta = timedelta(seconds=30)  # how long attempts may still take once the worker is stopped
    ahead: timedelta = timedelta(0)
    longest: timedelta = timedelta(minutes=15)  # the longest attempt, whatever its schedule allows

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
        """The limit on all attempts. Some slots are reserved for owners that have nothing in flight."""
        return self._with_reserve(self.in_flight)

    @property
    def slots_per_host(self) -> SlotLimit:
        """The same limit on attempts to one host, which many owners share."""
        return self._with_reserve(self.per_host)

    @property
    def low_water(self) -> int:
        """The number of queued fires at which a worker claims again."""
        return self.queued - min(CLAIM_BATCH, self.queued // 2)

    def without_keeper(self) -> RunOptions:
        """Return options for a worker without a lease keeper: with a longer lease, unless one was chosen."""
        return replace(self, lease=UNKEPT_LEASE) if self.lease is DEFAULT_LEASE else self  # a chosen lease is another object

    def _with_reserve(self, total: int) -> SlotLimit:
        """Reserve a fifth, but no slot that one owner alone may take."""
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
                f"lease: {self.lease} is shorter than {MIN_LEASE.seconds} s: other workers would take over from live ones"
            )
        if not self.longest:
            raise InvalidInput("longest: 0 allows no attempt: pass some seconds")
        if self.ahead > MAX_AHEAD:
            raise InvalidInput(f"ahead: {self.ahead} is longer than {MAX_AHEAD.seconds} s: claim later")


class WorkerConfig(msgspec.Struct, frozen=True):
    """`reopen` returns another store on the same data, for the thread that extends leases while the event loop is blocked."""

    name: str
    options: RunOptions
    retention_ms: int  # of the history that the worker writes
    reopen: Callable[[], Store] | None = None

    @property
    def lease_ms(self) -> int:
        return self.options.lease // _MS

    @property
    def ahead_ms(self) -> int:
        return self.options.ahead // _MS
