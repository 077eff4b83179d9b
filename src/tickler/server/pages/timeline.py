"""The fires of a schedule, drawn: when they should have been, when they were, and what became of them. Pure geometry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tickler.clock import to_datetime
from tickler.model.fire import Entry, Fire

LEFT, RIGHT = 130, 985
LANES = {"delivered": 26, "late": 26, "failed": 62, "skipped": 98, "other": 98}
LATE_MS = 5_000
MIN_MS = 60_000
STEPS_S = (10, 30, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800, 2_592_000, 7_862_400)


class Mark(NamedTuple):
    """A fire at its nominal instant; `to` is where it was delivered, where that lies apart."""

    kind: str  # delivered, late, failed, skipped, open, dead, other
    x: float
    to: float
    y: int
    title: str
    anchor: str


class Tick(NamedTuple):
    x: float
    label: str


class Timeline(NamedTuple):
    marks: list[Mark]
    ticks: list[Tick]
    now_x: float
    paused_x: float | None  # from there until now nothing was to fire

    @property
    def counts(self) -> str:
        """How many of each kind, for those who do not see them."""
        return ", ".join(f"{number} {kind}" for kind, number in Counter(mark.kind for mark in self.marks).items())


def timeline(entries: Sequence[Entry], fires: Sequence[Fire], now_ms: int, paused_at: int | None = None) -> Timeline | None:
    """None where nothing has happened. `paused_at` is since when it has been paused, if it is."""
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


def _of_entry(entry: Entry, nominal: float, real: float, number: int) -> Mark:
    if entry.happened == "delivered":
        kind = "late" if entry.late_ms > LATE_MS else "delivered"
    elif entry.happened in ("failed", "expired"):
        kind = "failed"
    else:
        kind = "skipped" if entry.happened == "skipped" else "other"
    status = f", answered {entry.status}" if entry.status else ""
    late = f", {entry.late_ms / 1000:.3g} s after its instant" if kind in ("delivered", "late") else ""
    rule = f" by its {entry.rule} rule, {entry.count or 1} in all" if entry.rule else ""
    title = f"{to_datetime(entry.nominal_at):%Y-%m-%d %H:%M:%S} UTC: {entry.happened}{status}{late}{rule}"
    return Mark(kind, nominal, real, LANES[kind], title, f"entry-{number}")


def _of_fire(fire: Fire, nominal: float, now: float) -> Mark:
    title = f"{to_datetime(fire.nominal_at):%Y-%m-%d %H:%M:%S} UTC: {fire.state}, attempt {fire.attempt}"
    return Mark(
        "dead" if fire.state == "dead" else "open",
        nominal,
        nominal if fire.state == "dead" else now,
        LANES["failed"],
        title,
        "fires",
    )


def _ticks(first: int, last: int, x: Callable[[int], float]) -> list[Tick]:
    """Some five instants that people would choose."""
    step = next((step * 1000 for step in STEPS_S if (last - first) / (step * 1000) <= 6), STEPS_S[-1] * 1000)
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if step < 43_200_000 else "%d %b"
    start = -(-first // step) * step
    return [Tick(x(at), f"{to_datetime(at):{form}}") for at in range(start, last, step) if x(at) < RIGHT - 40]
