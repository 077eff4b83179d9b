"""Whether machines agree on the time, and on the rules of time zones."""

from __future__ import annotations

from tickler.clock import MAX_OFFSET_MS, WARN_OFFSET_MS
from tickler.observe.checks.snapshot import StoreSnapshot, Zones
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import count, some, span

HERE = "this machine"
UPDATE_ZONES = "update tzdata on this machine: `pip install --upgrade tzdata`, or the system's package; then look again"


def clock(standing: StoreSnapshot) -> Finding | None:
    """This machine's clock, and those of workers, against the store's."""
    offsets = {HERE: standing.clock_offset_ms, **{worker.name: worker.clock_offset_ms for worker in standing.alive}}
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
        + (f"; a worker that is more than {span(MAX_OFFSET_MS)} off claims nothing" if too_far else ""),
        example=f"the clock of {worst} is {span(abs(off[worst]))} {'behind' if off[worst] > 0 else 'ahead'}",
        remedy="synchronise it, as with `timedatectl set-ntp true`",
    )


def tzdata(standing: StoreSnapshot) -> Finding | None:
    return older_zones(standing.zones) if standing.zones.is_older_here else None


def older_zones(zones: Zones, affected: int | None = None, example: str | None = None) -> Finding:
    """`affected` are the schedules that would fire at other times by this machine's rules, where they were counted."""
    others = "" if affected is None else f": {count(affected, 'schedule')} would fire at other times by its rules"
    return Finding(
        check="tzdata",
        severity="warning",
        count=1 if affected is None else affected,
        says=f"this machine's time zone database is {zones.here}, and {zones.store} was used with this store{others}",
        example=example,
        remedy=UPDATE_ZONES,
    )
