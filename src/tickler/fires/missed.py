"""Which instants of a due row fire, and which its policy skips: `missed`, `grace` and `max_catchup`, as pure functions."""

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
    """Instants that do not fire: the first, the last, and how many (at least, from 1,000 on)."""

    rule: Rule
    from_at: int
    until_at: int
    count: int


class Occurrences(NamedTuple):
    """Nominal instants that fire, oldest first, and those that do not."""

    fires: Sequence[int]
    skips: Sequence[Skip]


def occurrences(when: When, policy: Policy, nominal_at: int, now_at: int, ends_at: int | None) -> Occurrences:
    """What is owed of the instants from `nominal_at`, which is one of them, to `now_at`, or to the schedule's end.

    `now_at` is now less the offset of the schedule's spread.
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
    """Nothing that is later than the grace; what is not, is not missed, and fires."""
    if nominal_at >= in_time_from:
        return _caught_up(when, policy.max_catchup, nominal_at, last_at)
    skips = _skipped("missed", when, nominal_at, min(last_at, in_time_from - 1))
    first = when.next_after(in_time_from - 1)
    if first is None or first > last_at:
        return Occurrences([], skips)
    in_time = _caught_up(when, policy.max_catchup, first, last_at)
    return Occurrences(in_time.fires, [*skips, *in_time.skips])


def _skipped(rule: Rule, when: When, from_at: int, until_at: int) -> list[Skip]:
    """The skip of the instants between, the first of which is `from_at`."""
    last_at = max(when.last_before(until_at) or from_at, from_at)
    return [Skip(rule, from_at, last_at, _count(when, from_at, last_at))]


def _count(when: When, from_at: int, last_at: int) -> int:
    """Instants from the one to the other; no further than is worth the walk, except where it is arithmetic."""
    if isinstance(when, Every):
        return (last_at - from_at) // when.interval_ms + 1
    count, at = 1, from_at
    while count < MAX_COUNTED and at < last_at:
        following = when.next_after(at)
        if following is None or following > last_at:
            break
        count, at = count + 1, following
    return count
