"""Decides what follows from an attempt: the fire is done, retried, postponed, dead, or released. Pure but for the random jitter.

The delays are those of the schedule's policy; `DEFAULT_BACKOFF` in `model/policy.py` has the default ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

from tickler.clock import to_datetime
from tickler.model.delivery import Obstacle, Outcome
from tickler.model.fire import MAX_OPEN_MS, Claim, Fire, Then
from tickler.model.policy import Policy

MAX_RETRY_AFTER_MS = 7 * 86_400_000  # that any target can ask for
FIRST_RELEASE_MS = 500
MAX_RELEASE_DELAY_MS: dict[Obstacle | None, int] = {"missing": 300_000, "exhausted": 10_000, None: 10_000}
MAX_RELEASE_AGE_MS = MAX_OPEN_MS  # a fire that no worker could begin for this long is dead
MIN_POSTPONEMENT_MS = 1_000  # so that a target that always postpones causes no busy loop
MAX_POSTPONEMENT_MS = MAX_OPEN_MS  # a fire that is postponed for longer is dead

_MS = timedelta(milliseconds=1)


class NextStep(NamedTuple):
    then: Then
    deliver_after: int | None = None


def after(outcome: Outcome, policy: Policy, attempt: int, now_ms: int, rng: Callable[[], float] = random.random) -> NextStep:
    """Return what follows for an open fire. `rng` returns a number from 0 to 1."""
    if outcome.verdict == "delivered":
        return NextStep("done")
    if outcome.verdict == "postpone":
        return NextStep("postpone", outcome.retry_at)
    max_attempts = 1 if policy.delivery == "at-most-once" else policy.attempts  # it has a fire only if released or triggered
    if outcome.verdict != "retry" or attempt >= max_attempts:
        return NextStep("dead")
    if outcome.retry_at is not None:
        return NextStep("retry", outcome.retry_at)
    return NextStep("retry", now_ms + delay_ms(policy, attempt, outcome.retry_after_ms, rng))


def within_bounds(outcome: Outcome, claim: Claim, now_ms: int) -> Outcome:
    """Return the outcome with a `retry_at` that is a second away or more. Give up if the fire is postponed for too long.

    The time is counted from the nominal instant, or from when the fire was opened, if that was later: a missed instant may be
    older than the bound, and a dead fire opens again when a person retries it.
    """
    if outcome.retry_at is None:
        return outcome
    retry_at = max(outcome.retry_at, now_ms + MIN_POSTPONEMENT_MS)
    opened_at = now_ms if claim.fire is None else claim.fire.opened_at
    if retry_at <= max(claim.nominal_at, opened_at) + MAX_POSTPONEMENT_MS:
        return replace(outcome, retry_at=retry_at)
    since = "it was due" if claim.nominal_at >= opened_at else "it was opened"
    days = MAX_POSTPONEMENT_MS // 86_400_000
    too_late = f"postponed until {to_datetime(retry_at):%Y-%m-%d %H:%M:%S} UTC, which is more than {days} days after {since}"
    detail = f"{too_late}: {outcome.detail}" if outcome.detail else too_late
    return replace(outcome, verdict="give_up", detail=detail, retry_at=None)


def unbegun_since(fire: Fire | None, now_ms: int) -> int:
    """Return since when a fire cannot begin that is released now.

    That is when it was opened, unless there was an attempt: a postponed or failed fire may wait for weeks until its next one,
    and counts from the first release after that wait.
    """
    if fire is None:
        return now_ms
    was_attempted = fire.attempt > 1 or fire.was_postponed
    return fire.unbegun_since if fire.has_release_reason or not was_attempted else now_ms


def after_release(outcome: Outcome, since: int, now_ms: int, rng: Callable[[], float] = random.random) -> NextStep:
    """Return what follows for a fire that could not begin since then. The delay grows, since nothing counts releases."""
    unbegun_ms = max(now_ms - since, 0)
    if unbegun_ms > MAX_RELEASE_AGE_MS:
        return NextStep("dead")
    if outcome.retry_after_ms is not None:
        return NextStep("release", now_ms + min(outcome.retry_after_ms, MAX_RETRY_AFTER_MS))
    max_ms = min(FIRST_RELEASE_MS + unbegun_ms, MAX_RELEASE_DELAY_MS[outcome.obstacle])
    return NextStep("release", now_ms + max_ms // 2 + int(rng() * max_ms / 2))


def delay_ms(policy: Policy, attempt: int, retry_after_ms: int | None, rng: Callable[[], float]) -> int:
    """Return a random delay up to the policy's (full jitter), so that fires that failed together do not come back together.

    The delay that the target asked for is added, up to a week.
    """
    max_ms = policy.backoff[min(attempt, len(policy.backoff)) - 1] // _MS
    return min(retry_after_ms or 0, MAX_RETRY_AFTER_MS) + int(rng() * max_ms)
