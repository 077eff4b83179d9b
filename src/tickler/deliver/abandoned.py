"""Counts abandoned attempts, which keep running after their timeout, and limits their number."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tickler.model.delivery import Outcome

MAX_PER_OWNER = 10  # at one target
MAX_PER_TARGET = 500  # of all owners together

STUCK = Outcome(
    verdict="release",
    detail="earlier attempts are still running after their timeout: make the handler end, and restart the worker",
)


class Abandoned:
    """Counts an attempt until it ends by itself: nothing can stop it, and it keeps its memory."""

    def __init__(self) -> None:
        self._of_owner: Counter[tuple[str, str]] = Counter()  # by owner and target label
        self._of_target: Counter[str] = Counter()  # by target label

    def __len__(self) -> int:
        return self._of_target.total()

    def __bool__(self) -> bool:
        return bool(self._of_target)

    def add(self, owner: str, label: str, attempt: asyncio.Future[Any]) -> None:
        def ended(_: object) -> None:
            self._of_owner[owner, label] -= 1
            self._of_target[label] -= 1
            self._of_owner, self._of_target = +self._of_owner, +self._of_target  # drops zeros

        self._of_owner[owner, label] += 1
        self._of_target[label] += 1
        attempt.add_done_callback(ended)

    def any_of(self, owner: str) -> bool:
        return any(each == owner for each, _ in self._of_owner)

    def too_many(self, owner: str, label: str) -> bool:
        """Return whether no more attempts may begin: they would probably be abandoned too."""
        return self._of_owner[owner, label] >= MAX_PER_OWNER or self._of_target[label] >= MAX_PER_TARGET
