"""Virtual time for tests of applications: lets a year pass in seconds, and delivers what comes due."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, overload
from zoneinfo import ZoneInfo

import msgspec

from tickler.client import Tickler
from tickler.clock import ManualClock, to_datetime, to_ms
from tickler.database.blocking import Blocking
from tickler.errors import InvalidInput
from tickler.model.fire import DueItem, Entry

MAX_ATTEMPTS = 100_000

_MS = timedelta(milliseconds=1)


class Played(msgspec.Struct, frozen=True):
    """What happened while time passed: the history's entry of every attempt, in the order in which they were made."""

    attempts: Sequence[Entry]

    @property
    def delivered(self) -> list[Entry]:
        return [entry for entry in self.attempts if entry.happened == "delivered"]

    @property
    def failed(self) -> list[Entry]:
        """The attempts that failed, also those after which another succeeded."""
        return [entry for entry in self.attempts if entry.happened == "failed"]

    @property
    def postponed(self) -> list[Entry]:
        """The attempts whose handler raised `RetryLater`."""
        return [entry for entry in self.attempts if entry.happened == "postponed"]

    @property
    def dead(self) -> list[Entry]:
        """The last attempts of fires that became dead."""
        return [entry for entry in self.failed if entry.gave_up]

    def of(self, owner: str, key: str | None = None) -> Played:
        """Return the attempts of one owner, or of one schedule."""
        return Played([entry for entry in self.attempts if entry.owner == owner and key in (None, entry.key)])

    def nominal_times(self, tz: str = "UTC") -> list[datetime]:
        """Return the instants that were delivered, as the schedules named them, in a time zone."""
        zone = ZoneInfo(tz)
        return [entry.nominal.astimezone(zone) for entry in self.delivered]


@overload
def play(
    t: Tickler, clock: ManualClock, *, until: int | datetime | timedelta, seed: int = 0, max_attempts: int = MAX_ATTEMPTS
) -> Coroutine[Any, Any, Played]: ...
@overload
def play(
    t: Blocking, clock: ManualClock, *, until: int | datetime | timedelta, seed: int = 0, max_attempts: int = MAX_ATTEMPTS
) -> Played: ...
def play(
    t: Tickler | Blocking,
    clock: ManualClock,
    *,
    until: int | datetime | timedelta,
    seed: int = 0,
    max_attempts: int = MAX_ATTEMPTS,
) -> Coroutine[Any, Any, Played] | Played:
    """Let time pass until an instant, or for a while, and deliver everything that comes due: `await play(t, clock, until=…)`.

    The clock moves from one due instant to the next, and stands at `until` in the end. Deliveries are made one after the other,
    by instant, owner and key, so that the same schedules and handlers give the same attempts in the same order; `seed` chooses
    the random part of retries' delays. What handlers do is followed: they may put schedules, trigger, raise, and move the clock.
    The history is not pruned meanwhile.

    More than `max_attempts` attempts are an error, and so is a fire whose handler is not registered here. HTTP targets are called
    unless `t.deliver_with` replaces them. With a Tickler of `connect_sync`, call it without `await`.
    """

    def start(tickler: Tickler) -> Coroutine[Any, Any, Played]:
        return _play(tickler, clock, until, random.Random(seed).random, max_attempts)

    return t.wait_for(start) if isinstance(t, Blocking) else start(t)


async def _play(
    t: Tickler, clock: ManualClock, until: int | datetime | timedelta, rng: Callable[[], float], max_attempts: int
) -> Played:
    if not isinstance(clock, ManualClock) or t.clock is not clock:
        raise InvalidInput("play: this is not the clock of this Tickler: pass the same ManualClock to connect(clock=…) and here")
    if t.own_workers:
        raise InvalidInput("play: a worker runs here, and would deliver too: leave the block of t.running(), or stop it, first")
    until_ms = clock.now_ms() + until // _MS if isinstance(until, timedelta) else to_ms(until, "until")
    if until_ms < clock.now_ms():
        raise InvalidInput(f"until: {_shown(until_ms)} has passed at {_shown(clock.now_ms())}: pass a later instant")
    worker, left_alone = t.sequential_worker(rng), list[DueItem]()
    await worker.open()
    try:
        rounds = 0
        while (due := await worker.first_due(left_alone)) is not None and max(due.at, clock.now_ms()) <= until_ms:
            clock.set(max(due.at, clock.now_ms()))
            if not await worker.deliver_due() and await worker.first_due(left_alone) == due:
                left_alone.append(due)  # no worker of this version can claim it
            rounds += 1
            if max(rounds, len(worker.ended.entries)) > max_attempts:
                raise _too_many(worker.ended.entries, max_attempts, clock.now_ms())
    finally:
        await worker.close()
    clock.set(max(until_ms, clock.now_ms()))
    return Played(worker.ended.entries)


def _too_many(entries: Sequence[Entry], max_attempts: int, now_ms: int) -> InvalidInput:
    busiest = Counter((entry.owner, entry.key) for entry in entries).most_common(1)
    most = "".join(f", {number} of them of {owner}/{key}" for (owner, key), number in busiest)
    return InvalidInput(
        f"play: more than {max_attempts} attempts were made by {_shown(now_ms)}{most}: "
        "choose an earlier `until`, or pass max_attempts"
    )


def _shown(ms: int) -> str:
    return to_datetime(ms).isoformat()
