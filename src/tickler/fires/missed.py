"""Decides which instants of a due row fire and which its policy skips: `missed`, `grace` and `max_catchup`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from tickler.model.fire import Rule
from tickler.model.policy import Policy
from tickler.when import Every, When

MAX_COUNTED = 1_000

_MS = timedelta(milliseconds=1)


class Skip(msgspec.Struct, frozen=True):
    """Skipped instants: the first, the last, and how many; a count of 1,000 means at least that many."""

    rule: Rule
    from_at: int
    until_at: int
    count: int


class Occurrences(NamedTuple):
    """Nominal instants that fire, oldest first, and those that are skipped."""

    fires: Sequence[int]
    skips: Sequence[Skip]


def occurrences(when: When, policy: Policy, nominal_at: int, now_at: int, ends_at: int | None) -> Occurrences:
    """Decide about the instants from `nominal_at`, which is one of them, to `now_at` or the schedule's end.

    `now_at` is the current time minus the offset of the schedule's spread.
    """
    until_at = now_at if ends_at is None else min(now_at, ends_at)
    last_at = max(when.last_before(until_at) or nominal_at, nominal_at)
    if policy.missed == "all":
        return _caught_up(when, policy.max_catchup, nominal_at, last_at)
    if policy.missed == "skip":
        return _within_grace(when, policy, nominal_at, last_at, now_at - policy.grace // _MS)
    if last_at == nominal_at:
        return Occurrences([nominal_at], [])
    return Occurrences([last_at], _skipped("missed", when, nominal_at, last_at - 1))


def _caught_up(when: When, most: int, nominal_at: int, last_at: int) -> Occurrences:
    found = [nominal_at]
    following: int | None = nominal_at
    while following is not None and following < last_at:
        following = when.next_after(following)
        if following is None or following > last_at:
            break
        if len(found) == most:
            return Occurrences(found, _skipped("max_catchup", when, following, last_at))
        found.append(following)
    return Occurrences(found, [])


def _within_grace(when: When, policy: Policy, nominal_at: int, last_at: int, in_time_from: int) -> Occurrences:
    """Skip instants older than the grace period; later ones were not missed, and fire."""
    if nominal_at >= in_time_from:
        return _caught_up(when, policy.max_catchup, nominal_at, last_at)
    skips = _skipped("missed", when, nominal_at, min(last_at, in_time_from - 1))
    first = when.next_after(in_time_from - 1)
    if first is None or first > last_at:
        return Occurrences([], skips)
    in_time = _caught_up(when, policy.max_catchup, first, last_at)
    return Occurrences(in_time.fires, [*skips, *in_time.skips])


def _skipped(rule: Rule, when: When, from_at: int, until_at: int) -> list[Skip]:
    """Return the skip of all instants from `from_at`, which is one of them, to `until_at`."""
    last_at = max(when.last_before(until_at) or from_at, from_at)
    return [Skip(rule, from_at, last_at, _count(when, from_at, last_at))]


def _count(when: When, from_at: int, last_at: int) -> int:
    """Count instants from one to another: up to a limit, or exactly for intervals, where it is arithmetic."""
    if isinstance(when, Every):
        return (last_at - from_at) // when.interval_ms + 1
    count, at = 1, from_at
    while count < MAX_COUNTED and at < last_at:
        following = when.next_after(at)
        if following is None or following > last_at:
            break
        count, at = count + 1, following
    return count
