"""The contract of delivering: what is handed to a target, what came of it, and what a kind of target brings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol, TypeVar

import msgspec

from tickler.clock import to_datetime
from tickler.model.fire import Claim, Settlement
from tickler.model.payload import decode_on_access
from tickler.model.target import Target

# delivered; retry: it may work later; give_up: it will never; gone: nor will any other fire of this schedule;
# release: the attempt did not begin, so none is counted, and another worker may try
Verdict = Literal["delivered", "retry", "give_up", "gone", "release"]
# Why a worker releases: it lacks what the target needs, or it is out of file descriptors, memory or threads.
Obstacle = Literal["missing", "exhausted"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt to hand a fire to its target. `id` is the fire's: the same on every attempt, so dedupe by it."""

    id: str
    owner: str
    key: str
    nominal_at: int  # the instant the schedule named, in milliseconds
    attempt: int  # counted from 1
    payload: object  # decoded when it is first looked at
    target: Target | None
    timeout_s: float
    started_at: int
    context: Mapping[str, str] | None = None  # what goes along as headers, where the target takes any: a trace

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)


decode_on_access(Delivery)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """What came of an attempt. `status` is the target's answer, 0 when there was none."""

    verdict: Verdict
    status: int = 0
    detail: str | None = None  # what went wrong, in a sentence
    answer: str | None = None  # the first 2 KB of what the target said
    retry_after_ms: int | None = None  # how long the target asked to be left alone; of a release, how long it is put off
    duration_ms: int = 0
    obstacle: Obstacle | None = None  # of a release: what this worker has to mend


T_contra = TypeVar("T_contra", contravariant=True)


class Deliverer(Protocol[T_contra]):
    """Hands fires to one kind of target. Made and opened once a worker; `deliver` runs many times at once.

    What `deliver` raises counts as a failure to be retried, so only what is known to be hopeless needs a verdict of its own.
    It is cancelled after the schedule's timeout, unless it has `bounded = True`: then it ends by itself within `timeout_s`.
    """

    async def open(self) -> None: ...

    async def deliver(self, delivery: Delivery, target: T_contra) -> Outcome: ...

    async def close(self) -> None: ...


class Listener(Protocol):
    """Hears of what the workers of this process do, on their own event loop: it must be quick, and wait for nothing.

    What it raises is logged, and changes nothing.
    """

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """A look for what is due is over: when it was, how long it took, and how much was taken."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """An attempt is over, and this is what follows; the store has yet to hear of it. Those that were cut off are not told."""
