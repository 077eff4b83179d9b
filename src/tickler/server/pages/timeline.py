"""The timeline of a schedule's fires: when each was due, when it was attempted, and its state. Pure geometry.

`static/stream.js` has the same words for the states of live fires, and `style.css` a colour for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tickler.model.fire import Entry, Fire

LEFT, RIGHT = 130, 985
LANES = {"delivered": 26, "skipped": 98, "cancelled": 98, "retried": 98}
OTHER_LANE = 62  # retrying, postponed, dead and the other states of fires that are not delivered
LATE_MS = 5_000
MIN_MS = 60_000
STEPS_S = (10, 30, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800, 2_592_000, 7_862_400)


class Mark(NamedTuple):
    """A fire at the instant it was due; `to` is the place of its attempt."""

    state: str
    is_late: bool
    x: float
    to: float
    y: int
    at: int
    title: str
    anchor: str


class Tick(NamedTuple):
    x: float
    at: int
    form: str  # of `format_time`


class Timeline(NamedTuple):
    marks: list[Mark]
    ticks: list[Tick]
    now_x: float
    paused_x: float | None  # paused from there until now

    @property
    def counts(self) -> dict[str, int]:
        """The number of marks in each state."""
        return Counter(mark.state for mark in self.marks)


def timeline(entries: Sequence[Entry], fires: Sequence[Fire], now_ms: int, paused_at: int | None = None) -> Timeline | None:
    """Lay out a timeline; None if there is nothing to show. A paused schedule has been paused since `paused_at`."""
    instants = [at for entry in entries for at in (entry.nominal_at, entry.at)] + [fire.nominal_at for fire in fires]
    if not instants:
        return None
    last = max(*instants, now_ms)
    first = min(*instants, last - MIN_MS)
    length = last - first
    first -= length // 40
    scale = (RIGHT - LEFT) / (length * 1.05)

    def x(at: int) -> float:
        return round(LEFT + (at - first) * scale, 1)

    marks = [_of_entry(entry, x(entry.nominal_at), x(entry.at), number) for number, entry in enumerate(entries)]
    marks += [_of_fire(fire, x(fire.nominal_at), x(now_ms)) for fire in fires]
    paused_x = None if paused_at is None else max(x(paused_at), LEFT)
    return Timeline(marks, _ticks(first, first + int(length * 1.05), x), x(now_ms), paused_x)


def entry_state(entry: Entry) -> str:
    """Return the state that this entry of the history left its fire in."""
    if entry.gave_up:
        return "dead"
    return "retrying" if entry.happened == "failed" else entry.happened


def fire_state(fire: Fire) -> str:
    """Return the state of a fire that is not settled."""
    if fire.state != "open":
        return fire.state
    if fire.was_postponed and fire.worker is None:
        return "postponed"
    return "retrying" if fire.reason is not None else "waiting" if fire.worker is None else "in flight"


def _of_entry(entry: Entry, nominal: float, real: float, number: int) -> Mark:
    state = entry_state(entry)
    is_delivered = state == "delivered"
    status = f", status {entry.status}" if entry.status else ""
    late = f", {entry.late_ms / 1000:.3g} s late" if is_delivered else ""
    rule = f" by the {entry.rule} rule, {entry.count or 1} in all" if entry.rule else ""
    title, is_late = f"{state}{status}{late}{rule}; due", is_delivered and entry.late_ms > LATE_MS
    return Mark(state, is_late, nominal, real, LANES.get(state, OTHER_LANE), entry.nominal_at, title, f"entry-{number}")


def _of_fire(fire: Fire, nominal: float, now: float) -> Mark:
    state = fire_state(fire)
    title = f"{state}, attempt {fire.attempt}; due"
    return Mark(state, False, nominal, nominal if state == "dead" else now, OTHER_LANE, fire.nominal_at, title, "fires")


def _ticks(first: int, last: int, x: Callable[[int], float]) -> list[Tick]:
    """Return about five round instants."""
    step = next((step * 1000 for step in STEPS_S if (last - first) / (step * 1000) <= 6), STEPS_S[-1] * 1000)
    form = "second" if step < 60_000 else "minute" if step < 43_200_000 else "day"
    start = -(-first // step) * step
    return [Tick(x(at), at, form) for at in range(start, last, step) if x(at) < RIGHT - 40]
