"""How a fire may be postponed, and what is refused."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tickler import InvalidInput, RetryLater, TicklerError

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z


@pytest.mark.parametrize("at", [NOW_MS, datetime(2030, 11, 20, 12, tzinfo=UTC)], ids=["ms", "datetime"])
def test_an_instant_is_what_it_is_whenever_it_was_raised(at: Any) -> None:
    later = RetryLater(at=at, reason="too early")
    assert (later.at, later.after, later.reason, later.counts) == (NOW_MS, None, "too early", False)
    assert later.instant(NOW_MS - 5) == later.instant(NOW_MS + 5) == NOW_MS


@pytest.mark.parametrize("after", [90, 90.0, timedelta(seconds=90)], ids=repr)
def test_a_duration_counts_from_the_end_of_the_attempt(after: Any) -> None:
    later = RetryLater(after=after, counts=True)
    assert (later.at, later.after, later.counts) == (None, timedelta(seconds=90), True)
    assert later.instant(NOW_MS) == NOW_MS + 90_000


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, r"^RetryLater needs at or after, and got neither: pass one of them$"),
        ({"at": NOW_MS, "after": 1}, r"^RetryLater needs at or after, and got both: pass one of them$"),
        ({"at": datetime(2030, 11, 20)}, r"^at: 2030-11-20T00:00:00 is a naive datetime"),
        ({"at": NOW_MS // 1000}, r"^at: 1921406400 looks like seconds"),
        ({"at": "14:05"}, r"^at: '14:05' is a str"),
        ({"after": -1}, r"^after: -1 is not a duration from 0 to 365 days: pass seconds or a timedelta$"),
        ({"after": timedelta(days=400)}, r"^after: .* is not a duration from 0 to 365 days"),
        ({"after": True}, r"^after: True is not a duration"),
        ({"after": 1, "reason": 503}, r"^reason: 503 is a int: pass a str"),
        ({"after": 1, "counts": "yes"}, r"^counts: 'yes' is a str: pass True or False$"),
    ],
)
def test_what_names_no_instant_is_refused_and_says_what_to_pass(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        RetryLater(**fields)


def test_it_says_when_and_why_survives_a_pickle_and_is_one_of_our_errors() -> None:
    later = RetryLater(at=NOW_MS, reason="the bank is closed")
    assert str(later) == "not before 2030-11-20T12:00:00+00:00: the bank is closed"
    assert str(RetryLater(after=90)) == "again after 0:01:30"
    copy = pickle.loads(pickle.dumps(later))
    assert (str(copy), copy.at, copy.reason) == (str(later), later.at, later.reason)
    assert isinstance(later, TicklerError)
