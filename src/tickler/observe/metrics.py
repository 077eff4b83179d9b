"""Metrics for Prometheus: what the workers of this process did, and how the store stands."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tickler.errors import TicklerError
from tickler.model.delivery import Listener, Outcome
from tickler.model.fire import Claim, Settlement
from tickler.observe.forecast_cache import ForecastCache
from tickler.records.worker_status import WorkerReport, workers
from tickler.stores.store import Store

MAX_DUE = 10_000  # that are counted
MAX_DEAD = 200
MAX_ROWS = 10_000  # where there is no forecast to tell how many there are
FRESH_S = 5.0  # the store is not asked again within this, however many ask
SNAPSHOT_TIMEOUT_S = 5.0

OUTCOMES = ("delivered", "retry", "dead", "gone", "lost")

_LATENESS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_ROUND_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Observed(Protocol):
    """A Tickler, as far as its metrics need one."""

    forecasts: ForecastCache

    @property
    def store(self) -> Store: ...

    @property
    def in_flight(self) -> int: ...

    def now_ms(self) -> int: ...

    def listen(self, listener: Listener) -> None: ...


class StoreGauges(msgspec.Struct, frozen=True, kw_only=True):
    """How a store stands, from a few bounded reads."""

    due: int
    owed_since: int | None  # the earliest that a worker could take, if it is due
    dead: int
    rows: int
    alive: int
    last_claim_at: int


class Metrics:
    """Listens to a Tickler from the moment it is made, and has a registry of its own.

    What counts attempts and rounds is of this process; what is read from the store is of all, and the same in every process.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, tickler: Observed) -> None:
        self._tickler = tickler
        self._last_claim_at = 0
        self._asked_at = -math.inf
        self._asking = asyncio.Lock()
        self.registry = CollectorRegistry()
        self._of_process(self.registry)
        self._of_store(self.registry)
        tickler.listen(self)

    async def render(self) -> bytes:
        """All of it, in the text format. Without the store, `tickler_store_up` is 0 and what would be read there is NaN."""
        loop = asyncio.get_running_loop()
        async with self._asking:  # whoever comes meanwhile waits for the same answer
            if loop.time() - self._asked_at >= FRESH_S:
                await self._ask()
                self._asked_at = loop.time()
        return generate_latest(self.registry)

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        self._rounds.observe(seconds)
        if claimed:
            self._claims.inc(claimed)
            self._last_claim_at = max(self._last_claim_at, at_ms)

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        self._delivered[outcome_of(settlement, outcome)].inc()
        entry = settlement.entry
        if entry is not None and entry.attempt == 1:
            self._lateness.observe(max(entry.at - claim.due_at, 0) / 1000)

    def _of_process(self, registry: CollectorRegistry) -> None:
        self._claims = Counter("tickler_claims", "Fires that workers of this process took.", registry=registry)
        deliveries = Counter(
            "tickler_deliveries",
            "Attempts by workers of this process, by what came of them: delivered; retry, to be tried again; dead, given up; "
            "gone, as the target wants no more; lost, failed and not tried again since delivery is at most once.",
            ["outcome"],
            registry=registry,
        )
        self._delivered = {outcome: deliveries.labels(outcome) for outcome in OUTCOMES}
        self._lateness = Histogram(
            "tickler_lateness_seconds",
            "From when a fire was due, its spread included, to the start of its first attempt in this process.",
            buckets=_LATENESS_S,
            registry=registry,
        )
        self._rounds = Histogram(
            "tickler_round_seconds", "How long looks for what is due took, in this process.", buckets=_ROUND_S, registry=registry
        )
        in_flight = Gauge("tickler_in_flight", "Attempts that are being made in this process.", registry=registry)
        in_flight.set_function(lambda: self._tickler.in_flight)

    def _of_store(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, says: str) -> Gauge:
            return Gauge(name, says, registry=registry)

        self._up = gauge("tickler_store_up", "Whether the store answered.")
        self._due = gauge("tickler_due", f"Rows of the index that are due, at most {MAX_DUE}: that many are at least so many.")
        self._oldest = gauge("tickler_oldest_due_seconds", "For how long the earliest that a worker could take has been due.")
        self._rows = gauge(
            "tickler_index_rows",
            f"Rows of the index, as the last forecast met them; without one, counted to at most {MAX_ROWS}.",
        )
        self._dead = gauge("tickler_dead_fires", f"Fires that were given up and wait for a person, at most {MAX_DEAD}.")
        self._alive = gauge("tickler_workers_alive", "Workers that were heard of in the last minute.")
        self._claimed_at = gauge(
            "tickler_last_claim_timestamp_seconds", "When a worker last took something; of those elsewhere, up to 20 s behind."
        )
        self._from_store: Sequence[Gauge] = (self._due, self._oldest, self._rows, self._dead, self._alive, self._claimed_at)

    async def _ask(self) -> None:
        now_ms = self._tickler.now_ms()
        try:
            async with asyncio.timeout(SNAPSHOT_TIMEOUT_S):
                stands = await standing(self._tickler.store, self._tickler.forecasts, now_ms)
        except (TicklerError, TimeoutError):
            self._up.set(0)
            for gauge in self._from_store:
                gauge.set(math.nan)
            return
        self._up.set(1)
        self._due.set(stands.due)
        self._oldest.set(0 if stands.owed_since is None else (now_ms - stands.owed_since) / 1000)
        self._rows.set(stands.rows)
        self._dead.set(stands.dead)
        self._alive.set(stands.alive)
        self._claimed_at.set(max(stands.last_claim_at, self._last_claim_at) / 1000)


def outcome_of(settlement: Settlement, outcome: Outcome) -> str:
    """One of `OUTCOMES`."""
    if outcome.verdict in ("delivered", "gone"):
        return outcome.verdict
    return settlement.then if settlement.then in ("retry", "dead") else "lost"


async def standing(store: Store, forecasts: ForecastCache, now_ms: int) -> StoreGauges:
    next_at = await store.fires.next_at()
    heard_of = await workers(store.records, now_ms)
    kept = await forecasts.kept()
    return StoreGauges(
        due=await store.index.count(due_by=now_ms, most=MAX_DUE),
        owed_since=next_at if next_at is not None and next_at <= now_ms else None,
        dead=len(await store.fires.list(state="dead", id=None, owner=None, after=None, limit=MAX_DEAD)),
        rows=kept.rows if kept is not None else await store.index.count(most=MAX_ROWS),
        alive=sum(worker.is_alive(now_ms) for worker in heard_of),
        last_claim_at=max(map(_last_claim, heard_of), default=0),
    )


def _last_claim(worker: WorkerReport) -> int:
    return worker.last_claim_at or 0
