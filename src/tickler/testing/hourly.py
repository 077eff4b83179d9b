"""Hourly schedules for the kits, their instants, and policies."""

from __future__ import annotations

from tickler.model.policy import Policy
from tickler.model.schedule import Schedule
from tickler.testing.store_contract import HOUR_MS, NOW_MS
from tickler.when import At, Cron, When

HOOK = "https://example.org/hook"
HOURLY = Cron("0 * * * *")
ONCE = At("2030-11-20T13:00:00Z")  # hour(1)
MINUTE_MS = 60_000

AT_MOST_ONCE = Policy(delivery="at-most-once")
CATCH_UP = Policy(missed="all")
SPREAD = Policy(spread=1800)
WAIT = Policy(overlap="wait")


def hour(n: float) -> int:
    """Return the n-th due instant of an hourly schedule that was put at NOW_MS."""
    return NOW_MS + round(n * HOUR_MS)


def minutely(minute: int) -> Cron:
    """Return an hourly expression, this many minutes after the full hour."""
    return Cron(f"{minute} * * * *")


def schedule(key: str = "digest", when: When = HOURLY, *, owner: str = "u1", **fields: object) -> Schedule:
    return Schedule(owner=owner, key=key, when=when, **{"target": HOOK, **fields})  # type: ignore[arg-type]  # any of its fields
