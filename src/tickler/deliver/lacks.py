"""Remembers what this worker was asked to deliver to and cannot: handlers and packages that other workers may have."""

from __future__ import annotations

import logging

MAX_LACKS = 50
REMEMBERED_MS = 15 * 60_000  # longer than what is given back is put off

log = logging.getLogger("tickler.deliver")


class Lacks:
    """By label, when each was last asked for. Each is logged once."""

    def __init__(self) -> None:
        self._met_at: dict[str, int] = {}
        self._logged: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._met_at)

    def met(self, label: str, detail: str, now_ms: int) -> None:
        self._met_at.pop(label, None)
        self._met_at[label] = now_ms  # the last to go
        if len(self._met_at) > MAX_LACKS:
            del self._met_at[next(iter(self._met_at))]
        if label not in self._logged and len(self._logged) < 10 * MAX_LACKS:
            self._logged.add(label)
            log.warning("%s: fires that need it are given back for workers that have it, and no attempt is counted", detail)

    def recent(self, now_ms: int) -> dict[str, int]:
        """Those that were asked for lately."""
        self._met_at = {label: at for label, at in self._met_at.items() if now_ms - at < REMEMBERED_MS}
        return dict(self._met_at)
