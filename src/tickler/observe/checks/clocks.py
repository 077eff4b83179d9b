"""Checks that machines agree on the time and on time zone rules."""

from __future__ import annotations

from tickler.clock import MAX_OFFSET_MS, WARN_OFFSET_MS
from tickler.observe.checks.snapshot import StoreSnapshot, Zones
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import count, some, span

THIS_MACHINE = "this machine"
UPDATE_TZDATA = "update tzdata on this machine: `pip install --upgrade tzdata`, or the system's package; then check again"


def clock(snapshot: StoreSnapshot) -> Finding | None:
    """Compare the clocks of this machine and of workers with the store's."""
    offsets = {THIS_MACHINE: snapshot.clock_offset_ms, **{worker.name: worker.clock_offset_ms for worker in snapshot.alive}}
    off = {name: offset for name, offset in offsets.items() if abs(offset) > WARN_OFFSET_MS}
    if not off:
        return None
    worst = max(off, key=lambda name: abs(off[name]))
    too_far = abs(off[worst]) > MAX_OFFSET_MS
    return Finding(
        check="clock",
        severity="critical" if too_far else "warning",
        count=len(off),
        says=f"{some(len(off), 'clock is', 'clocks are')} more than {span(WARN_OFFSET_MS)} off the store's"
        + (f"; a worker more than {span(MAX_OFFSET_MS)} off claims nothing" if too_far else ""),
        example=f"the clock of {worst} is {span(abs(off[worst]))} {'behind' if off[worst] > 0 else 'ahead'}",
        remedy="synchronise it, for example with `timedatectl set-ntp true`",
    )


def tzdata(snapshot: StoreSnapshot) -> Finding | None:
    return older_zones(snapshot.zones) if snapshot.zones.is_older_here else None


def older_zones(zones: Zones, affected: int | None = None, example: str | None = None) -> Finding:
    """Return the finding. `affected`: how many schedules would fire at other times by this machine's rules, if counted."""
    others = "" if affected is None else f": by its rules {count(affected, 'schedule')} would fire at other times"
    return Finding(
        check="tzdata",
        severity="warning",
        count=1 if affected is None else affected,
        says=f"this machine's time zone database is {zones.here}, and the store was used with {zones.store}{others}",
        example=example,
        remedy=UPDATE_TZDATA,
    )
