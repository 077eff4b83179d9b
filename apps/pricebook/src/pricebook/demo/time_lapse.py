"""Lets time pass for pricebook: what comes due is done at its time, by a worker as it works anywhere."""

from __future__ import annotations

from datetime import datetime

from pricebook.app import Pricebook
from tickler import ManualClock, RunOptions

BUDGET_MS = 30_000
MAX_ROUNDS = 100
STEP_MS = 10_000  # what is due within so long is done at once

_OPTIONS = RunOptions(drain=30)


class TimeLapse:
    """`clock` is the one that pricebook was opened with."""

    def __init__(self, book: Pricebook, clock: ManualClock) -> None:
        self._book = book
        self._clock = clock

    async def until(self, at: datetime) -> None:
        """Let time pass until an instant, and do what comes due; nothing if it has passed."""
        end = int(at.timestamp() * 1000)
        await work(self._book)
        while (due := await self._book.t.index.next_due()) is not None and due <= end:
            self._set(min(end, due + STEP_MS))
            await work(self._book)
        self._set(end)

    def _set(self, ms: int) -> None:
        self._clock.set(max(ms, self._clock.now_ms()))


async def work(book: Pricebook) -> None:
    """Follow what was written, and do what is due now, until there is nothing left."""
    for _ in range(MAX_ROUNDS):
        followed = await book.settling.consume()
        done = await book.t.tick(BUDGET_MS, _OPTIONS)
        if not followed and not done.claimed:
            return
