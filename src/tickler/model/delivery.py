"""The contract of delivery: a delivery, its outcome, and the deliverer of a kind of target."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol, TypeVar

import msgspec

from tickler.clock import to_datetime
from tickler.model.fire import Claim, Settlement
from tickler.model.payload import decode_on_access
from tickler.model.target import Target

# delivered; retry: it may succeed later; give_up: it never will; gone: neither will any other fire of this schedule;
# postpone: it is too early, and the attempt is not counted; release: the attempt did not begin, so it is not counted, and another
# worker may try
Verdict = Literal["delivered", "retry", "give_up", "gone", "postpone", "release"]
# Why a worker releases a fire: it lacks what the target needs, or it is out of file descriptors, memory or threads.
Obstacle = Literal["missing", "exhausted"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt to deliver a fire to its target. `id` is the fire's, the same on every attempt: deduplicate by it."""

    id: str
    owner: str
    key: str
    nominal_at: int  # the instant the schedule named, in milliseconds
    attempt: int  # counted from 1
    payload: object  # decoded at the first access
    target: Target | None
    timeout_s: float
    started_at: int
    context: Mapping[str, str] | None = None  # trace context, sent as headers if the target takes any

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)


decode_on_access(Delivery)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """The outcome of an attempt. `status` is the HTTP status of the response, 0 if there was none."""

    verdict: Verdict
    status: int = 0
    detail: str | None = None  # what went wrong, in a sentence
    answer: str | None = None  # the first 2 KB of the response
    retry_after_ms: int | None = None  # the delay that the target asked for; of a release, the delay before the next attempt
    retry_at: int | None = None  # of a postponement: until when; of a retry, the exact instant instead of the policy's delay
    duration_ms: int = 0
    obstacle: Obstacle | None = None  # of a release: what this worker lacks


T_contra = TypeVar("T_contra", contravariant=True)


class Deliverer(Protocol[T_contra]):
    """Delivers fires to one kind of target. Each worker opens it once; `deliver` runs many times concurrently.

    An exception from `deliver` leads to a retry, so only hopeless cases need a verdict of their own; `RetryLater` postpones the
    fire. `deliver` is cancelled after the schedule's timeout, unless the deliverer has `bounded = True`: then it ends by itself
    within `timeout_s`.
    """

    async def open(self) -> None: ...

    async def deliver(self, delivery: Delivery, target: T_contra) -> Outcome: ...

    async def close(self) -> None: ...


class Listener(Protocol):
    """Is called for rounds and attempts of this process's workers, on their event loop: it must be quick and never block.

    Exceptions are logged and have no other effect.
    """

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """A round of claiming ended: when it was, how long it took, and how many fires it claimed."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """An attempt ended. Its settlement is not yet written. Not called for abandoned attempts."""
