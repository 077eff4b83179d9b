"""Replaces waiting: pauses are recorded, and end at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pauses:
    """Records the calls of `pause` in `attempts`, and runs work during a pause."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self._planned: dict[int, Callable[[], object]] = {}

    def during(self, number: int, action: Callable[[], object]) -> None:
        """Run the work during the pause of that number, counted from 1."""
        self._planned[number] = action

    async def pause(self, attempt: int) -> None:
        self.attempts.append(attempt)
        self._planned.pop(len(self.attempts), lambda: None)()
        await asyncio.sleep(0)
