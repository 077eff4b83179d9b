"""What to try around a change of offset: plans whose wall times fall into it, beside it, and across it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from tickler.when import At, Cron, Weekly, When

from .oracle import WallClock
from .transitions import DAY, Transition

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MARGIN = 3 * DAY // 2  # walked before what is compared, so that the oracle knows which wall times it has seen


class Trial(NamedTuple):
    """How to make a when in a zone, and how to ask the oracle for its instants."""

    when: Callable[[str], When]
    oracle: Callable[[WallClock], list[int]]


def cron_trial(expr: str) -> Trial:
    return Trial(lambda zone: Cron(expr, tz=zone), lambda clock: clock.fires_of_cron(expr))


def weekly_trial(plan: dict[str, list[str]]) -> Trial:
    return Trial(lambda zone: Weekly(plan, tz=zone), lambda clock: clock.fires_of_weekly(plan))


def at_trial(moment: str) -> Trial:
    return Trial(lambda zone: At(moment, tz=zone), lambda clock: clock.fires_of_at(moment))


class Change:
    """The days around one transition: 1.5 before and after, 3 when the clock jumps by half a day or more."""

    def __init__(self, zone: str, transition: Transition) -> None:
        around = 3 * DAY if abs(transition.jump) >= DAY // 2 else 3 * DAY // 2
        self.transition = transition
        self.start = transition.at - around
        self.end = transition.at + around
        self.clock = WallClock(zone, self.start - MARGIN, self.end + DAY)

    @property
    def walls(self) -> list[datetime]:
        """Wall times at the edges of what is missing or shown twice, a minute beside them, and in the middle."""
        low, high = self.transition.edges
        middle = (low + high) // 2 // 60 * 60
        readings = sorted({low - 60, low, low + 60, middle, high - 60, high, high + 60})
        return [datetime.fromtimestamp(reading, UTC) for reading in readings]

    def trials(self) -> list[Trial]:
        expressions = sorted(self.fixed_expressions() | self.running_expressions())
        moments = [f"{wall:%Y-%m-%dT%H:%M}" for wall in self.walls]
        return [
            *(cron_trial(expr) for expr in expressions),
            *(weekly_trial(plan) for plan in self.weekly_plans()),
            *(at_trial(moment) for moment in moments),
        ]

    def fires(self, trial: Trial) -> list[int]:
        """The instants that the oracle gives it in these days."""
        return [at for at in trial.oracle(self.clock) if self.start < at <= self.end]

    def probes(self, fires: list[int]) -> list[int]:
        """Milliseconds at which to ask: each fire and beside it, near the transition if there are many; inside a fold."""
        at, width = self.transition.at, abs(self.transition.jump)
        near = [fire for fire in fires if len(fires) < 50 or abs(fire - at) <= width + 3600]
        beside = [fire * 1000 + ms for fire in near for ms in (-1000, -1, 0, 1000)]
        inside = [(at + part * width // 4) * 1000 + ms for part in range(-4, 5) for ms in (-1000, 0, 1000)]
        return beside + inside

    def fixed_expressions(self) -> set[str]:
        low, *_, high = self.walls
        middle = self.walls[len(self.walls) // 2]
        daily = {f"{wall.minute} {wall.hour} * * *" for wall in self.walls}
        return daily | {
            "30 2 * * *",
            "0 0 * * *",
            "15,45 0-3 * * *",
            f"5-59/20 {low.hour},{high.hour} * * *",
            f"{middle.minute} {middle.hour} * * {_cron_weekday(middle)}",
            f"{low.minute},{high.minute} 0-23/2 * * {_cron_weekday(low)},{_cron_weekday(high)}",
            f"0 0 {middle.day} * *",
            f"{middle.minute} {middle.hour} {middle.day} {middle.month} *",
            f"30 1 {low.day} * {_cron_weekday(high)}",
        }

    def running_expressions(self) -> set[str]:
        low, *_, high = self.walls
        middle = self.walls[len(self.walls) // 2]
        return {
            "0 * * * *",
            "*/15 * * * *",
            "*/7 * * * *",
            "30 */3 * * 1-5",
            f"* {low.hour},{high.hour} * * *",
            f"*/10 {middle.hour} * * {_cron_weekday(middle)}",
            f"{middle.minute} * {middle.day} * *",
            f"{low.minute} */2 {low.day} {low.month} {_cron_weekday(high)}",
        }

    def weekly_plans(self) -> list[dict[str, list[str]]]:
        times = sorted({f"{wall:%H:%M}" for wall in self.walls} | {"00:00", "02:30"})
        middle = self.walls[len(self.walls) // 2]
        return [dict.fromkeys(WEEKDAYS, times), {WEEKDAYS[middle.weekday()]: ["00:00", f"{middle:%H:%M}"]}]


def _cron_weekday(wall: datetime) -> int:
    return wall.isoweekday() % 7
