"""Says things that may happen thousands of times a second: the first few of them, and then how many there were."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

MAX_LINES = 10
WITHIN_S = 20.0


class ThrottledLog:
    """One kind of thing that is logged, at `level`. What `more` calls is not said one by one goes into a line of its own."""

    def __init__(self, log: logging.Logger, level: int, more: str) -> None:
        self._log = log
        self._level = level
        self._more = more
        self._since_s = 0.0
        self._said = 0

    def say(self, text: str, *values: object, extra: Mapping[str, object] | None = None) -> None:
        if not self._log.isEnabledFor(self._level):
            return
        now_s = time.monotonic()
        if now_s - self._since_s >= WITHIN_S:
            self.sum_up()
            self._since_s = now_s
        self._said += 1
        if self._said <= MAX_LINES:
            self._log.log(self._level, text, *values, extra=extra)

    def sum_up(self) -> None:
        """Say how many there were that were not said."""
        if self._said > MAX_LINES:
            self._log.log(self._level, self._more, self._said - MAX_LINES)
        self._said = 0
