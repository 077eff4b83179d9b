"""Claims less for a while after this process or machine has run out of something, and more again as attempts succeed."""

from __future__ import annotations

import asyncio
import logging

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 30.0
ENOUGH = 512  # claims at once, from which on nothing is held back
LITTLE_EVERY_S = 1.0  # one more is claimed, though nothing succeeds: all that is in hand may hang
FORGOTTEN_S = 60.0

log = logging.getLogger("tickler.deliver")


class Shortage:
    """After each time that something ran out, nothing is claimed for a pause that doubles; then one, two more, four more, … as
    attempts begin, and one more every second until then.
    """

    def __init__(self) -> None:
        self.of: str | None = None  # what ran out; None, as nearly always, if nothing has lately
        self._until_s = 0.0
        self._pause_s = 0.0
        self._allowed = ENOUGH
        self._claimed = 0  # since the pause, or since it last eased

    def met(self, what: str) -> None:
        """An attempt could not begin. Those that come while nothing is claimed say nothing new."""
        now_s = asyncio.get_running_loop().time()
        if self.of is not None and now_s < self._until_s:
            return
        if self.of is None:
            log.warning("%s: what was claimed is given back, and less is claimed until that is over: raise the limit", what)
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
        self._until_s = now_s + self._pause_s
        self.of, self._allowed, self._claimed = what, 1, 0

    def eased(self) -> None:
        """An attempt began."""
        if self.of is not None and not self.lasts():
            self._allowed, self._claimed = self._allowed * 2, 0
            if self._allowed >= ENOUGH:
                self._end()

    def lasts(self) -> bool:
        """Whether nothing is to be claimed right now."""
        if self.of is None:
            return False
        over_s = asyncio.get_running_loop().time() - self._until_s
        if over_s > FORGOTTEN_S:
            self._end()
        return over_s < 0

    def room(self, wanted: int) -> int:
        """How many of those that are wanted may be claimed."""
        if self.of is None:
            return wanted
        if self.lasts():
            return 0
        little = int((asyncio.get_running_loop().time() - self._until_s) / LITTLE_EVERY_S)
        return max(min(wanted, self._allowed + little - self._claimed), 0)

    def claimed(self, number: int) -> None:
        self._claimed += number

    def _end(self) -> None:
        log.info("%s: that is over, and as much is claimed as before", self.of)
        self.of, self._pause_s, self._allowed = None, 0.0, ENOUGH
