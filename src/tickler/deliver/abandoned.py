"""Counts attempts that go on although their time is over, and bounds how many there may be."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tickler.model.delivery import Outcome

MAX_OF_OWNER = 10  # at one target
MAX_TO_TARGET = 500  # of all owners together

STUCK = Outcome(
    verdict="release",
    detail="earlier attempts go on although their time is over: see that its handler ends, and start the worker again",
)


class Abandoned:
    """Attempts of this process that nobody waits for, until they end. Nothing can end them, and each keeps its memory."""

    def __init__(self) -> None:
        self._of: Counter[tuple[str, str]] = Counter()  # by owner and label of the target
        self._to: Counter[str] = Counter()  # by label alone

    def __len__(self) -> int:
        return self._to.total()

    def __bool__(self) -> bool:
        return bool(self._to)

    def add(self, owner: str, label: str, attempt: asyncio.Future[Any]) -> None:
        def ended(_: object) -> None:
            self._of[owner, label] -= 1
            self._to[label] -= 1
            self._of, self._to = +self._of, +self._to  # without those that have none

        self._of[owner, label] += 1
        self._to[label] += 1
        attempt.add_done_callback(ended)

    def any_of(self, owner: str) -> bool:
        return any(each == owner for each, _ in self._of)

    def too_many(self, owner: str, label: str) -> bool:
        """Whether no more of that owner may begin there: they would most likely be abandoned too."""
        return self._of[owner, label] >= MAX_OF_OWNER or self._to[label] >= MAX_TO_TARGET
