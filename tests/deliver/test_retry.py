"""After an attempt a fire is done, retried within the policy's delay, or dead."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.deliver.retry import MAX_RETRY_AFTER_MS, NextStep, after, delay_ms
from tickler.model.delivery import Outcome, Verdict
from tickler.model.policy import DEFAULT_BACKOFF, Policy

NOW_MS = 1_921_406_400_000
SOAK = os.environ.get("TICKLER_SOAK") == "1"

examples = settings(max_examples=5_000 if SOAK else 100, derandomize=not SOAK, deadline=None, database=None)

delays = st.integers(0, 366 * 86_400_000).map(lambda ms: timedelta(milliseconds=ms))
rolls = st.floats(0, 1, exclude_max=True)


def failed(verdict: Verdict = "retry", retry_after_ms: int | None = None) -> Outcome:
    return Outcome(verdict=verdict, retry_after_ms=retry_after_ms)


@examples
@given(st.lists(delays, min_size=1, max_size=20), st.integers(1, 1_000), st.one_of(st.none(), st.integers(0, 10**9)), rolls)
def test_the_delay_is_jittered_over_all_of_the_policys_and_what_was_asked_for_comes_on_top(
    backoff: list[timedelta], attempt: int, asked_for_ms: int | None, roll: float
) -> None:
    most_ms = backoff[min(attempt, len(backoff)) - 1] // timedelta(milliseconds=1)
    delay = delay_ms(Policy(backoff=list(backoff)), attempt, asked_for_ms, lambda: roll)
    asked_ms = min(asked_for_ms or 0, MAX_RETRY_AFTER_MS)
    assert asked_ms <= delay <= asked_ms + most_ms
    assert abs(delay - asked_ms - roll * most_ms) <= 1, "full jitter: all of the delay, in proportion to the dice"


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 5), (2, 300), (3, 1_800), (4, 1_800), (999, 1_800)])
def test_the_delays_come_in_turn_and_the_last_repeats(attempt: int, seconds: int) -> None:
    almost_one = 1 - 2**-53
    delay = delay_ms(Policy(backoff=[5, 300, 1_800]), attempt, None, lambda: almost_one)
    assert seconds * 1_000 - 1 <= delay <= seconds * 1_000


@examples
@given(st.integers(1, 9))
def test_the_dice_are_real_where_none_are_given(attempt: int) -> None:
    policy = Policy()
    found = {after(failed(), policy, attempt, NOW_MS).deliver_after for _ in range(20)}
    assert all(
        at is not None and NOW_MS <= at <= NOW_MS + DEFAULT_BACKOFF[attempt - 1] // timedelta(milliseconds=1) for at in found
    )
    assert len(found) > 1, "many that failed together do not come back together"


@pytest.mark.parametrize("attempt", [1, 9, 10, 11])
def test_a_failure_is_tried_again_until_there_are_no_attempts_left(attempt: int) -> None:
    assert after(failed(), Policy(attempts=10), attempt, NOW_MS).then == ("retry" if attempt < 10 else "dead")


@pytest.mark.parametrize("verdict", ["give_up", "gone"])
def test_what_will_never_work_is_dead_at_once(verdict: Verdict) -> None:
    assert after(failed(verdict, retry_after_ms=1_000), Policy(), 1, NOW_MS) == NextStep("dead")


@pytest.mark.parametrize("attempt", [1, 10, 50])
def test_what_was_delivered_is_done_on_whatever_attempt(attempt: int) -> None:
    assert after(Outcome(verdict="delivered"), Policy(attempts=3), attempt, NOW_MS) == NextStep("done")


def test_retry_after_is_counted_from_now() -> None:
    assert after(failed(retry_after_ms=90_000), Policy(), 1, NOW_MS, lambda: 0.5) == NextStep("retry", NOW_MS + 90_000 + 2_500)


@pytest.mark.parametrize("verdict", ["retry", "give_up", "gone"])
def test_what_is_delivered_at_most_once_is_not_tried_a_second_time(verdict: Verdict) -> None:
    """It has a fire when it was triggered by hand; the target may well have got it."""
    assert after(failed(verdict), Policy(delivery="at-most-once"), 1, NOW_MS) == NextStep("dead")
