"""Reduces claiming while this process or machine is out of a resource, and recovers as attempts begin again."""

from __future__ import annotations

import asyncio
import logging

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 30.0
UNLIMITED = 512  # allowed claims at which the shortage is over
TRICKLE_EVERY_S = 1.0  # one more claim even if no attempt begins: all attempts in flight may hang
FORGOTTEN_S = 60.0

log = logging.getLogger("tickler.deliver")


class Shortage:
    """After each shortage nothing is claimed for a pause, which doubles; then one fire, two more, four more, … as attempts begin,
    and one more every second until then.
    """

    def __init__(self) -> None:
        self.of: str | None = None  # the exhausted resource; usually None
        self._until_s = 0.0
        self._pause_s = 0.0
        self._allowed = UNLIMITED
        self._claimed = 0  # since the pause, or since `_allowed` last grew

    def began(self, what: str) -> None:
        """Note that an attempt could not begin. During the pause that is nothing new."""
        now_s = asyncio.get_running_loop().time()
        if self.of is not None and now_s < self._until_s:
            return
        if self.of is None:
            log.warning("%s: the worker releases fires, and claims less until the shortage is over: raise the limit", what)
        self._pause_s = min(max(self._pause_s * 2, FIRST_PAUSE_S), MAX_PAUSE_S)
        self._until_s = now_s + self._pause_s
        self.of, self._allowed, self._claimed = what, 1, 0

    def eased(self) -> None:
        """Note that an attempt began."""
        if self.of is not None and not self.lasts():
            self._allowed, self._claimed = self._allowed * 2, 0
            if self._allowed >= UNLIMITED:
                self._end()

    def lasts(self) -> bool:
        """Return whether nothing may be claimed right now."""
        if self.of is None:
            return False
        over_s = asyncio.get_running_loop().time() - self._until_s
        if over_s > FORGOTTEN_S:
            self._end()
        return over_s < 0

    def room(self, wanted: int) -> int:
        """Return how many of the wanted fires may be claimed."""
        if self.of is None:
            return wanted
        if self.lasts():
            return 0
        trickle = int((asyncio.get_running_loop().time() - self._until_s) / TRICKLE_EVERY_S)
        return max(min(wanted, self._allowed + trickle - self._claimed), 0)

    def claimed(self, number: int) -> None:
        self._claimed += number

    def _end(self) -> None:
        log.info("%s: the shortage is over, and the worker claims as before", self.of)
        self.of, self._pause_s, self._allowed = None, 0.0, UNLIMITED
