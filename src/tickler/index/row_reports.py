"""Reports of a worker about rows that it set aside, and about being outdated."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence

import msgspec

from tickler.index.advance import ROW_FORMAT, RowProblem

REPORT_EVERY_MS = 60_000
REPORT_RETENTION_MS = 10 * 60_000

log = logging.getLogger("tickler.index")


def log_set_aside(problems: Sequence[RowProblem]) -> None:
    """Log one line per claim, with the first row; `index.set_aside()` returns all."""
    if problems:
        first = problems[0]
        log.warning(
            "set aside %d due rows that are unreadable, first %s/%s: %s; put them again, or see index.set_aside()",
            len(problems),
            first.row.owner,
            first.row.key,
            first.reason,
        )


class OutdatedReport:
    """Reports once a minute that this worker is outdated, in the log and as a record."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self._reported_at: int | None = None

    def make(self, now_ms: int) -> tuple[bytes, int] | None:
        """Return the record's value and expiry, or None if one was made within the minute."""
        if self._reported_at is not None and 0 <= now_ms - self._reported_at < REPORT_EVERY_MS:
            return None
        self._reported_at = now_ms
        log.warning("due rows have a newer format than %d and were left alone: upgrade this worker", ROW_FORMAT)
        return msgspec.json.encode({"row_format": ROW_FORMAT, "seen_at": now_ms}), now_ms + REPORT_RETENTION_MS
