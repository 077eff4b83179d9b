"""The forecast that is kept: worked out by one process at a time, every few minutes, and read by all as one record."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from tickler.clock import Clock
from tickler.errors import TicklerError, VersionConflict
from tickler.observe.forecast import PAGE, Forecast, Walked, forecast
from tickler.records.contract import RecordStore
from tickler.records.kinds import FORECAST

NAME = "all"
OLD_MS = 10 * 60_000  # when whoever keeps it fresh works out the next
STALE_MS = 15 * 60_000  # when it is not shown any more: nobody seems to keep it fresh
TURN_MS = 5 * 60_000  # how long others leave it to the one that has begun
SMALL_ROWS = 5_000  # a walk over so few is over at once, so it is done at nearly every look
SMALL_OLD_MS = 15_000
LOOK_S = 60.0

log = logging.getLogger("tickler.observe")


class CachedForecast(msgspec.Struct, frozen=True):
    """What the record holds: the last forecast, and until when somebody is at work on the next."""

    forecast: Forecast | None = None
    busy_until: int = 0


class ForecastCache:
    """The forecast of a store. An old one is worked out anew by whoever comes first; the others go on with it meanwhile.

    Where somebody runs it, nobody else ever has to wait for a walk, but for the very first.
    """

    def __init__(self, index: Walked, records: RecordStore, clock: Clock) -> None:
        self._index = index
        self._records = records
        self._clock = clock

    async def kept(self) -> Forecast | None:
        """The last one, however old it is; one read, never a walk."""
        return (await self._read())[0].forecast

    async def get(self) -> Forecast:
        """The last one; worked out now if that is stale, or if there is none, unless another process is just doing so."""
        kept = await self.kept()
        if kept is not None and self._clock.now_ms() - kept.at < (SMALL_OLD_MS if kept.rows < SMALL_ROWS else STALE_MS):
            return kept
        return await self.refresh() or kept or await forecast(self._index, self._clock.now_ms())

    async def at_hand(self) -> Forecast:
        """For pages, at the cost of a page of the index: of few rows one of now, of many the last one, which `run` renews.

        Only where there is none yet it is worked out, however many they are.
        """
        _, following = await self._index.walk(None, PAGE)
        if following is None:
            return await forecast(self._index, self._clock.now_ms())
        return await self.kept() or await self.get()

    async def refresh(self) -> Forecast | None:
        """Work it out and keep it, if it is old and nobody else is at it; None otherwise."""
        kept, version = await self._read()
        now_ms = self._clock.now_ms()
        last = kept.forecast
        is_old = last is None or now_ms - last.at >= (SMALL_OLD_MS if last.rows < SMALL_ROWS else OLD_MS)
        if not is_old or now_ms < kept.busy_until:
            return None
        try:
            version = await self._write(CachedForecast(kept.forecast, now_ms + TURN_MS), version)
        except VersionConflict:
            return None
        found: Forecast | None = None
        try:
            found = await forecast(self._index, now_ms)
        finally:
            await self._end_turn(CachedForecast(kept.forecast if found is None else found), version)
        return found

    async def run(self) -> None:
        """Keep it fresh, until cancelled."""
        while True:
            try:
                await self.refresh()
            except TicklerError as error:
                log.warning("no new forecast: %s", error)
            await asyncio.sleep(LOOK_S)

    async def _end_turn(self, kept: CachedForecast, version: int) -> None:
        try:
            await self._write(kept, version)
        except VersionConflict:
            log.debug("the forecast took longer than a turn, and another process has begun one")

    async def _read(self) -> tuple[CachedForecast, int]:
        record = await self._records.get(FORECAST, NAME, now_ms=self._clock.now_ms())
        if record is None:
            return CachedForecast(), 0
        try:
            return msgspec.convert(record.value, CachedForecast), record.version
        except msgspec.ValidationError:
            return CachedForecast(), record.version  # of another version of this program

    async def _write(self, kept: CachedForecast, version: int) -> int:
        value = msgspec.json.encode(kept)
        return await self._records.put(FORECAST, NAME, value, now_ms=self._clock.now_ms(), expected=version)
