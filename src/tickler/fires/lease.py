"""The pure middle of `fires.lease`: decides which open fires are leased, become dead or are cancelled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from tickler.fires.contract import LeaseRequest
from tickler.model.fire import Claim, Entry, Fire, cancelled, expired
from tickler.model.schedule import StoredSchedule

SCHEDULE_GONE = "its schedule is gone"


class LeasePlan(NamedTuple):
    """The fires of `claims` and `dead` are as the lease leaves them; those of `cancelled` are as they were."""

    claims: list[Claim]
    dead: list[Fire]
    cancelled: list[Fire]
    entries: list[Entry]


def lease(found: Iterable[tuple[Fire, StoredSchedule | None]], request: LeaseRequest) -> LeasePlan:
    """Decide about fires, each with its schedule, as they were found.

    The time of a lease is its token. It tells a lease from a later one of the same worker and attempt, which exists after a
    release, a postponement and a manual retry of a dead fire, so that a repeated settlement does not match that one.
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
        due_at = min(fire.nominal_at + schedule.offset_ms(), fire.deliver_after or now_ms)  # retries by hand come earlier
        result.claims.append(Claim(schedule, fire.nominal_at, leased, due_at))
    return result


def _in_order(found: tuple[Fire, StoredSchedule | None]) -> tuple[int, int, str]:
    fire = found[0]
    return fire.deliver_after or 0, fire.nominal_at, fire.id


def _why_not_again(fire: Fire, schedule: StoredSchedule) -> str | None:
    """Return why a fire whose lease ran out becomes dead, or None."""
    if schedule.policy.delivery == "at-most-once":
        return f"{fire.worker} lost its lease, and the schedule is delivered at most once"
    if fire.attempt >= schedule.policy.attempts:
        return f"{fire.worker} lost its lease in the last attempt"
    return None
