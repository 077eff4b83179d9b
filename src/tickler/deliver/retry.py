"""Decides what follows from an attempt: the fire is done, retried, dead, or released. Pure but for the random jitter.

The delays are those of the schedule's policy; `DEFAULT_BACKOFF` in `model/policy.py` has the default ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, NamedTuple

from tickler.model.delivery import Obstacle, Outcome
from tickler.model.policy import Policy

MAX_RETRY_AFTER_MS = 7 * 86_400_000  # that any target can ask for
FIRST_RELEASE_MS = 500
MAX_RELEASE_DELAY_MS: dict[Obstacle | None, int] = {"missing": 300_000, "exhausted": 10_000, None: 10_000}
MAX_RELEASE_AGE_MS = 30 * 86_400_000  # a fire that no worker could begin for this long is dead

_MS = timedelta(milliseconds=1)


class NextStep(NamedTuple):
    then: Literal["done", "retry", "dead", "release"]
    deliver_after: int | None = None


def after(outcome: Outcome, policy: Policy, attempt: int, now_ms: int, rng: Callable[[], float] = random.random) -> NextStep:
    """Return what follows for an open fire. `rng` returns a number from 0 to 1."""
    if outcome.verdict == "delivered":
        return NextStep("done")
    max_attempts = 1 if policy.delivery == "at-most-once" else policy.attempts  # it has a fire only if released or triggered
    if outcome.verdict != "retry" or attempt >= max_attempts:
        return NextStep("dead")
    return NextStep("retry", now_ms + delay_ms(policy, attempt, outcome.retry_after_ms, rng))


def after_release(outcome: Outcome, opened_at: int, now_ms: int, rng: Callable[[], float] = random.random) -> NextStep:
    """Return what follows for a fire whose attempt did not begin. Releases are not counted, so the delay grows with its age."""
    age_ms = max(now_ms - opened_at, 0)
    if age_ms > MAX_RELEASE_AGE_MS:
        return NextStep("dead")
    if outcome.retry_after_ms is not None:
        return NextStep("release", now_ms + min(outcome.retry_after_ms, MAX_RETRY_AFTER_MS))
    max_ms = min(FIRST_RELEASE_MS + age_ms, MAX_RELEASE_DELAY_MS[outcome.obstacle])
    return NextStep("release", now_ms + max_ms // 2 + int(rng() * max_ms / 2))


def delay_ms(policy: Policy, attempt: int, retry_after_ms: int | None, rng: Callable[[], float]) -> int:
    """Return a random delay up to the policy's (full jitter), so that fires that failed together do not come back together.

    The delay that the target asked for is added, up to a week.
    """
    max_ms = policy.backoff[min(attempt, len(policy.backoff)) - 1] // _MS
    return min(retry_after_ms or 0, MAX_RETRY_AFTER_MS) + int(rng() * max_ms)
