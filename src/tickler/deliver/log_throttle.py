"""Limits log lines that could come thousands of times a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

MAX_LINES = 10
WITHIN_S = 20.0


class ThrottledLog:
    """Logs the first few lines of a period. `summary` then reports how many were suppressed."""

    def __init__(self, log: logging.Logger, level: int, summary: str) -> None:
        self._log = log
        self._level = level
        self._summary = summary
        self._since_s = 0.0
        self._lines = 0

    def log(self, text: str, *values: object, extra: Mapping[str, object] | None = None) -> None:
        if not self._log.isEnabledFor(self._level):
            return
        now_s = time.monotonic()
        if now_s - self._since_s >= WITHIN_S:
            self.log_suppressed()
            self._since_s = now_s
        self._lines += 1
        if self._lines <= MAX_LINES:
            self._log.log(self._level, text, *values, extra=extra)

    def log_suppressed(self) -> None:
        """Log how many lines were suppressed, and start a new period."""
        if self._lines > MAX_LINES:
            self._log.log(self._level, self._summary, self._lines - MAX_LINES)
        self._lines = 0
