"""What follows from an attempt: done, tried again later, given up, or given back. Pure, but for the dice of the jitter."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, NamedTuple

from tickler.model.delivery import Obstacle, Outcome
from tickler.model.policy import Policy

MAX_RETRY_AFTER_MS = 7 * 86_400_000
FIRST_RELEASE_MS = 500
MAX_RELEASE_MS: dict[Obstacle | None, int] = {"missing": 300_000, "exhausted": 10_000, None: 10_000}
MAX_RELEASED_MS = 30 * 86_400_000  # after which a fire that nobody could begin is dead

_MS = timedelta(milliseconds=1)


class NextStep(NamedTuple):
    then: Literal["done", "retry", "dead", "release"]
    deliver_after: int | None = None


def after(outcome: Outcome, policy: Policy, attempt: int, now_ms: int, dice: Callable[[], float] = random.random) -> NextStep:
    """For a fire that is open. `dice` rolls from 0 to 1."""
    if outcome.verdict == "delivered":
        return NextStep("done")
    most = 1 if policy.delivery == "at-most-once" else policy.attempts  # such a fire was opened by hand
    if outcome.verdict != "retry" or attempt >= most:
        return NextStep("dead")
    return NextStep("retry", now_ms + delay_ms(policy, attempt, outcome.retry_after_ms, dice))


def after_release(outcome: Outcome, opened_at: int, now_ms: int, dice: Callable[[], float] = random.random) -> NextStep:
    """For a fire whose attempt did not begin. Nothing counts how often that was, so the delay grows with the fire's age."""
    age_ms = max(now_ms - opened_at, 0)
    if age_ms > MAX_RELEASED_MS:
        return NextStep("dead")
    if outcome.retry_after_ms is not None:
        return NextStep("release", now_ms + min(outcome.retry_after_ms, MAX_RETRY_AFTER_MS))
    most_ms = min(FIRST_RELEASE_MS + age_ms, MAX_RELEASE_MS[outcome.obstacle])
    return NextStep("release", now_ms + most_ms // 2 + int(dice() * most_ms / 2))


def delay_ms(policy: Policy, attempt: int, asked_for_ms: int | None, dice: Callable[[], float]) -> int:
    """Full jitter: anything up to the policy's delay, so that many that failed together do not come back together.

    What the target asked for comes on top, up to a week.
    """
    most_ms = policy.backoff[min(attempt, len(policy.backoff)) - 1] // _MS
    return min(asked_for_ms or 0, MAX_RETRY_AFTER_MS) + int(dice() * most_ms)
