"""The stored forecast: computed by one process at a time, every few minutes, and read by all from one record."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from tickler.clock import Clock
from tickler.errors import TicklerError, VersionConflict
from tickler.model.record import value_of
from tickler.observe.forecast import PAGE, Forecast, WalkableIndex, forecast
from tickler.records.contract import RecordStore
from tickler.records.kinds import FORECAST

NAME = "all"
OLD_MS = 10 * 60_000  # age at which `run` computes the next one
STALE_MS = 15 * 60_000  # age at which it is no longer served: no process seems to refresh it
TURN_MS = 5 * 60_000  # how long other processes wait for the one that computes
SMALL_ROWS = 5_000  # so few rows are walked quickly, so that the forecast may be younger
SMALL_OLD_MS = 15_000
REFRESH_CHECK_S = 60.0

log = logging.getLogger("tickler.observe")


class CachedForecast(msgspec.Struct, frozen=True):
    """The record: the last forecast, and until when a process is computing the next one."""

    forecast: Forecast | None = None
    busy_until: int = 0


class ForecastCache:
    """The forecast of a store. One process computes a new one; the others use the old one meanwhile.

    While a process executes `run`, callers never wait for a walk, except for the very first one.
    """

    def __init__(self, index: WalkableIndex, records: RecordStore, clock: Clock) -> None:
        self._index = index
        self._records = records
        self._clock = clock

    async def last(self) -> Forecast | None:
        """Return the last forecast, however old: one read, never a walk."""
        return (await self._read())[0].forecast

    async def get(self) -> Forecast:
        """Return the last forecast. Compute one if there is none or it is stale, unless another process is doing so."""
        last = await self.last()
        if last is not None and self._clock.now_ms() - last.at < (SMALL_OLD_MS if last.rows < SMALL_ROWS else STALE_MS):
            return last
        return await self.refresh() or last or await forecast(self._index, self._clock.now_ms())

    async def for_page(self) -> Forecast:
        """Return a forecast for a web page, at the cost of one index page: a fresh one for few rows, else the last one.

        Compute it only if there is none yet.
        """
        _, following = await self._index.walk(None, PAGE)
        if following is None:
            return await forecast(self._index, self._clock.now_ms())
        return await self.last() or await self.get()

    async def refresh(self) -> Forecast | None:
        """Compute and store the forecast if the last one is old and no other process is computing; otherwise return None."""
        cached, version = await self._read()
        now_ms = self._clock.now_ms()
        last = cached.forecast
        is_old = last is None or now_ms - last.at >= (SMALL_OLD_MS if last.rows < SMALL_ROWS else OLD_MS)
        if not is_old or now_ms < cached.busy_until:
            return None
        try:
            version = await self._write(CachedForecast(last, now_ms + TURN_MS), version)
        except VersionConflict:
            return None
        found: Forecast | None = None
        try:
            found = await forecast(self._index, now_ms)
        finally:
            await self._end_turn(CachedForecast(last if found is None else found), version)
        return found

    async def run(self) -> None:
        """Refresh the forecast until cancelled."""
        while True:
            try:
                await self.refresh()
            except TicklerError as error:
                log.warning("forecast not refreshed: %s", error)
            await asyncio.sleep(REFRESH_CHECK_S)

    async def _end_turn(self, cached: CachedForecast, version: int) -> None:
        try:
            await self._write(cached, version)
        except VersionConflict:
            log.debug("the forecast took too long: another process has started one")

    async def _read(self) -> tuple[CachedForecast, int]:
        record = await self._records.get(FORECAST, NAME, now_ms=self._clock.now_ms())
        if record is None:
            return CachedForecast(), 0
        return value_of(record, CachedForecast) or CachedForecast(), record.version

    async def _write(self, cached: CachedForecast, version: int) -> int:
        value = msgspec.json.encode(cached)
        return await self._records.put(FORECAST, NAME, value, now_ms=self._clock.now_ms(), expected=version)
