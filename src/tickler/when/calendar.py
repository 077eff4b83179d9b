"""The common base of cron expressions and weekly plans: wall times in a zone."""

from __future__ import annotations

from tickler.when.wall_times import WallTimes, last_fixed, last_running, next_fixed, next_running
from tickler.when.when import When, not_ms
from tickler.when.zones import Zone, load_zone


class Calendar(When):
    """The instants at which a zone's wall clock shows given times: once each, or every time if it is `running`."""

    __slots__ = ("_found", "_running", "_walls", "_zone")
    _walls: WallTimes
    _zone: Zone
    _running: bool
    _found: tuple[int, int]  # the last answer, and since when it is the answer: many users share one object

    def _keep(self, text: str, tz: str, walls: WallTimes, *, running: bool) -> None:
        self._freeze(text, tz, _walls=walls, _zone=load_zone(tz), _running=running, _found=(0, 0))

    @property
    def walls(self) -> WallTimes:
        """The wall times, before the zone decides what happens in gaps and folds."""
        return self._walls

    @property
    def running(self) -> bool:
        """Whether it fires every time the wall clock matches, rather than once for each wall time."""
        return self._running

    def next_after(self, after_ms: int) -> int | None:
        if type(after_ms) is not int:
            raise not_ms(after_ms)
        since_ms, next_ms = self._found
        if since_ms <= after_ms < next_ms:
            return next_ms
        find = next_running if self._running else next_fixed
        at = find(self._walls, self._zone, after_ms // 1000)
        if at is None:
            return None
        object.__setattr__(self, "_found", (after_ms, at * 1000))
        return at * 1000

    def last_before(self, until_ms: int) -> int | None:
        if type(until_ms) is not int:
            raise not_ms(until_ms)
        find = last_running if self._running else last_fixed
        at = find(self._walls, self._zone, until_ms // 1000)
        return None if at is None else at * 1000
