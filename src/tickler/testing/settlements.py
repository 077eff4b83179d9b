"""Settlements for the fire kits, each with its history entry."""

from __future__ import annotations

from msgspec.structs import replace

from tickler.model.fire import POSTPONED, Claim, Entry, Fire, Happened, Settlement
from tickler.model.schedule import Id


def entry(fire: Fire, at: int, happened: Happened = "delivered", detail: str | None = None) -> Entry:
    return Entry(
        owner=fire.owner,
        key=fire.key,
        nominal_at=fire.nominal_at,
        at=at,
        happened=happened,
        fire_id=fire.id,
        attempt=fire.attempt,
        detail=detail,
        worker=fire.worker,
    )


def done(fire: Fire, at: int, *, delete_schedule: bool = False) -> Settlement:
    id = Id(fire.owner, fire.key)
    return Settlement(id, fire, "done", entry(fire, at), delete_schedule=delete_schedule)


def retry(fire: Fire, at: int, deliver_after: int) -> Settlement:
    failed = entry(fire, at, "failed", "it answered 503")
    return Settlement(Id(fire.owner, fire.key), fire, "retry", failed, deliver_after)


def dead(fire: Fire, at: int, *, delete_schedule: bool = False) -> Settlement:
    failed = entry(fire, at, "failed", "it answered 410")
    return Settlement(Id(fire.owner, fire.key), fire, "dead", failed, delete_schedule=delete_schedule)


def release(fire: Fire, deliver_after: int | None = None) -> Settlement:
    return Settlement(Id(fire.owner, fire.key), fire, "release", None, deliver_after)


def postponement(fire: Fire, at: int, until_at: int, detail: str = "too early") -> Entry:
    return replace(entry(fire, at, "postponed", detail), until_at=until_at)


def postpone(fire: Fire, at: int, until_at: int, detail: str = "too early") -> Settlement:
    said = postponement(fire, at, until_at, detail)
    return Settlement(Id(fire.owner, fire.key), fire, "postpone", said, until_at, reason=f"{POSTPONED}{detail}")


def noted(claim: Claim, at: int, *, delete_schedule: bool = False) -> Settlement:
    """Return the settlement of a claim without a fire."""
    owner, key = claim.schedule.id
    said = Entry(owner=owner, key=key, nominal_at=claim.nominal_at, at=at, happened="delivered", attempt=1)
    return Settlement(Id(owner, key), None, "done", said, delete_schedule=delete_schedule)
