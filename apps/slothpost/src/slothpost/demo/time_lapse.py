"""Lets time pass for slothpost: what comes due is done at its time, by a worker as it works anywhere."""

from __future__ import annotations

from datetime import datetime

from slothpost.app import Slothpost
from tickler import ManualClock, RunOptions

BUDGET_MS = 30_000
_OPTIONS = RunOptions(drain=30)


class TimeLapse:
    """`clock` is the one that slothpost was opened with."""

    def __init__(self, slothpost: Slothpost, clock: ManualClock) -> None:
        self._slothpost = slothpost
        self._clock = clock

    async def until(self, at: datetime) -> None:
        """Let time pass until an instant, and do what comes due; nothing if it has passed."""
        end = int(at.timestamp() * 1000)
        while (due := await self._slothpost.t.index.next_due()) is not None and due <= end:
            self._set(due)
            await work(self._slothpost)
        self._set(end)

    def sleep_until(self, at: datetime) -> None:
        """Let time pass while slothpost does not run. What comes due meanwhile is found late."""
        self._set(int(at.timestamp() * 1000))

    def _set(self, ms: int) -> None:
        self._clock.set(max(ms, self._clock.now_ms()))


async def work(slothpost: Slothpost) -> None:
    """Do what is due now."""
    await slothpost.t.tick(BUDGET_MS, _OPTIONS)
