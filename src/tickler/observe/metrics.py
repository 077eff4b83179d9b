"""Prometheus metrics of this process's workers and of the store."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tickler.errors import TicklerError
from tickler.fires.contract import next_at
from tickler.model.delivery import Listener, Outcome
from tickler.model.fire import Claim, Settlement
from tickler.observe.forecast_cache import ForecastCache
from tickler.records.worker_status import workers
from tickler.stores.store import Store

MAX_DUE = 10_000
MAX_DEAD = 200
MAX_ROWS = 10_000  # without a forecast
CACHE_S = 5.0  # the store is read at most this often
SNAPSHOT_TIMEOUT_S = 5.0

OUTCOMES = ("delivered", "retry", "postponed", "dead", "gone", "lost")

_LATENESS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_ROUND_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class ObservedTickler(Protocol):
    """The part of a Tickler that metrics need."""

    forecasts: ForecastCache

    @property
    def store(self) -> Store: ...

    @property
    def in_flight(self) -> int: ...

    def now_ms(self) -> int: ...

    def listen(self, listener: Listener) -> None: ...


class Metrics:
    """Collects metrics of a Tickler in a registry of its own.

    Counters of attempts and claims cover this process; gauges from the store cover all processes, and are the same in each.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, tickler: ObservedTickler) -> None:
        self._tickler = tickler
        self._last_claim_at = 0
        self._read_at = -math.inf
        self._read_lock = asyncio.Lock()
        self.registry = CollectorRegistry()
        self._add_process_metrics(self.registry)
        self._add_store_gauges(self.registry)
        tickler.listen(self)

    async def render(self) -> bytes:
        """Return all metrics in the text format. If the store does not answer, `tickler_store_up` is 0 and its gauges are NaN."""
        loop = asyncio.get_running_loop()
        async with self._read_lock:  # concurrent requests share one read
            if loop.time() - self._read_at >= CACHE_S:
                await self._read_store()
                self._read_at = loop.time()
        return generate_latest(self.registry)

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        self._rounds.observe(seconds)
        if claimed:
            self._claims.inc(claimed)
            self._last_claim_at = max(self._last_claim_at, at_ms)

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        self._delivered[outcome_of(settlement, outcome)].inc()
        entry, fire = settlement.entry, claim.fire
        is_again = fire is not None and (fire.was_postponed or fire.unbegun_since != fire.opened_at)
        if entry is not None and entry.attempt == 1 and not is_again:
            self._lateness.observe(max(entry.at - claim.due_at, 0) / 1000)

    def _add_process_metrics(self, registry: CollectorRegistry) -> None:
        self._claims = Counter("tickler_claims", "Fires claimed by workers of this process.", registry=registry)
        deliveries = Counter(
            "tickler_deliveries",
            "Attempts by workers of this process, by outcome: delivered; retry, will be retried; postponed, "
            "will be made again, as the target asked; dead, failed for good; "
            "gone, the target accepts no more fires; lost, failed and not retried because delivery is at most once.",
            ["outcome"],
            registry=registry,
        )
        self._delivered = {outcome: deliveries.labels(outcome) for outcome in OUTCOMES}
        self._lateness = Histogram(
            "tickler_lateness_seconds",
            "Delay from the due time of a fire, including spread, to the start of its first attempt in this process.",
            buckets=_LATENESS_S,
            registry=registry,
        )
        self._rounds = Histogram(
            "tickler_round_seconds", "Duration of searches for due fires in this process.", buckets=_ROUND_S, registry=registry
        )
        in_flight = Gauge("tickler_in_flight", "Running attempts in this process.", registry=registry)
        in_flight.set_function(lambda: self._tickler.in_flight)

    def _add_store_gauges(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, description: str) -> Gauge:
            return Gauge(name, description, registry=registry)

        self._up = gauge("tickler_store_up", "1 if the store answered, 0 if not.")
        self._due = gauge("tickler_due", f"Due index rows, counted up to {MAX_DUE}.")
        self._oldest = gauge(
            "tickler_oldest_due_seconds", "Age of the oldest due fire that a worker could claim; 0 if none is due."
        )
        self._rows = gauge("tickler_index_rows", f"Index rows at the last forecast; without one, counted up to {MAX_ROWS}.")
        self._dead = gauge("tickler_dead_fires", f"Dead fires, counted up to {MAX_DEAD}.")
        self._alive = gauge("tickler_workers_alive", "Workers seen in the last minute.")
        self._claimed_at = gauge(
            "tickler_last_claim_timestamp_seconds",
            "Time of the last claim by any worker; up to 20 s old for workers of other processes.",
        )
        self._from_store: Sequence[Gauge] = (self._due, self._oldest, self._rows, self._dead, self._alive, self._claimed_at)

    async def _read_store(self) -> None:
        try:
            async with asyncio.timeout(SNAPSHOT_TIMEOUT_S):
                values = await self._store_values(self._tickler.store, self._tickler.now_ms())
        except (TicklerError, TimeoutError):
            self._up.set(0)
            for gauge in self._from_store:
                gauge.set(math.nan)
            return
        self._up.set(1)
        for gauge, value in values.items():
            gauge.set(value)

    async def _store_values(self, store: Store, now_ms: int) -> dict[Gauge, float]:
        """Return the values of all gauges from the store, with a few bounded reads."""
        due_at = await next_at(store.fires)
        reports = await workers(store.records, now_ms)
        forecast = await self._tickler.forecasts.last()
        return {
            self._due: await store.index.count(due_by=now_ms, most=MAX_DUE),
            self._oldest: max(now_ms - due_at, 0) / 1000 if due_at is not None else 0,
            self._rows: forecast.rows if forecast is not None else await store.index.count(most=MAX_ROWS),
            self._dead: len(await store.fires.list(state="dead", id=None, owner=None, after=None, limit=MAX_DEAD)),
            self._alive: sum(worker.is_alive(now_ms) for worker in reports),
            self._claimed_at: max([self._last_claim_at, *(worker.last_claim_at or 0 for worker in reports)]) / 1000,
        }


def outcome_of(settlement: Settlement, outcome: Outcome) -> str:
    """One of `OUTCOMES`."""
    if outcome.verdict in ("delivered", "gone"):
        return outcome.verdict
    if settlement.then == "postpone":
        return "postponed"
    return settlement.then if settlement.then in ("retry", "dead") else "lost"
