"""Holds fires that were claimed ahead of their instant."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator

from tickler.model.fire import Claim


class EarlyClaims:
    """Calls `on_due` with each claim at its instant. Until then the claim takes no place in the queue."""

    def __init__(self, on_due: Callable[[Claim], None]) -> None:
        self._on_due = on_due
        self._held: dict[int, tuple[asyncio.TimerHandle, Claim]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Claim]:
        return (claim for _, claim in self._held.values())

    def hold(self, claim: Claim, seconds: float) -> None:
        number = next(self._numbers)
        self._held[number] = (asyncio.get_running_loop().call_later(seconds, self._release, number), claim)

    def clear(self) -> None:
        for timer, _ in self._held.values():
            timer.cancel()
        self._held.clear()

    def _release(self, number: int) -> None:
        _, claim = self._held.pop(number)
        self._on_due(claim)
