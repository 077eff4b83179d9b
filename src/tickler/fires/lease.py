"""The pure middle of `fires.lease`: open fires whose time has come in; which are leased, dead or cancelled out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from tickler.fires.contract import LeaseRequest
from tickler.model.fire import Claim, Entry, Fire, cancelled, expired
from tickler.model.schedule import StoredSchedule

SCHEDULE_GONE = "its schedule is gone"


class LeasePlan(NamedTuple):
    """Claims have their fires as they are from now on, and so do `dead`; `cancelled` are as they were."""

    claims: list[Claim]
    dead: list[Fire]
    cancelled: list[Fire]
    entries: list[Entry]


def lease(found: Iterable[tuple[Fire, StoredSchedule | None]], request: LeaseRequest) -> LeasePlan:
    """Decide for fires as they were found, each with its schedule.

    The lease token is the time: a settlement that is repeated must not meet a later lease of the same worker and attempt, which
    there is after a release, and after a person retried a dead fire.
    """
    result, now_ms = LeasePlan([], [], [], []), request.now_ms
    until_ms = now_ms + request.lease_ms
    for fire, schedule in sorted(found, key=_in_order):
        reason = None if fire.worker is None or schedule is None else _why_not_again(fire, schedule)
        if fire.worker is not None:
            result.entries.append(expired(fire, now_ms, gave_up=reason is not None))
        if schedule is None:
            result.cancelled.append(fire)
            result.entries.append(cancelled(fire, now_ms, SCHEDULE_GONE))
            continue
        if reason is not None:
            result.dead.append(replace(fire, state="dead", deliver_after=None, worker=None, lease_token=None, reason=reason))
            continue
        leased = replace(fire, attempt=fire.attempt + 1, deliver_after=until_ms, worker=request.worker, lease_token=now_ms)
        due_at = min(fire.nominal_at + schedule.offset_ms(), fire.deliver_after or now_ms)  # by hand: without the spread
        result.claims.append(Claim(schedule, fire.nominal_at, leased, due_at))
    return result


def _in_order(found: tuple[Fire, StoredSchedule | None]) -> tuple[int, int, str]:
    fire = found[0]
    return fire.deliver_after or 0, fire.nominal_at, fire.id


def _why_not_again(fire: Fire, schedule: StoredSchedule) -> str | None:
    """Of a fire whose worker went away with it."""
    if schedule.policy.delivery == "at-most-once":
        return f"{fire.worker} went away with it, and it is delivered at most once"
    if fire.attempt >= schedule.policy.attempts:
        return f"{fire.worker} went away with its last attempt"
    return None
