"""A worker that delivers what is due one fire after the other, in the same order each time: for tests in virtual time."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TypeVar

from tickler.clock import Clock
from tickler.deliver.attempt import Attempts
from tickler.deliver.dispatcher import Dispatcher
from tickler.deliver.gone_targets import pause_schedule
from tickler.deliver.run_options import WorkerConfig
from tickler.deliver.settlement_writer import SettlementWriter
from tickler.errors import InvalidInput
from tickler.fires.contract import FOREVER_MS, ClaimRequest, LeaseRequest
from tickler.model.delivery import Outcome
from tickler.model.fire import Claim, DueItem, Entry, Settlement
from tickler.schedules.schedules import Schedules
from tickler.stores.store import Store

MAX_ROUND = 100_000  # fires
MAX_ROUND_BYTES = 1 << 40

R = TypeVar("R", ClaimRequest, LeaseRequest)


class SequentialWorker:
    """Claims, delivers and settles as other workers do, but for concurrency: the order does not depend on how long things take.

    Fires of one round are delivered by instant, owner and key, and their outcomes are written at its end. It keeps no leases, and
    reports nothing.
    """

    def __init__(self, store: Store, schedules: Schedules, attempts: Attempts, clock: Clock, config: WorkerConfig) -> None:
        self._fires = store.fires
        self._attempts = attempts
        self._clock = clock
        self._config = config
        self._writer = SettlementWriter(store.fires, clock, config.retention_ms)
        on_gone = partial(pause_schedule, schedules)
        self._dispatcher = Dispatcher(attempts, self._writer, clock, config.options, _do_nothing, on_gone)
        self.ended = EndedAttempts()
        attempts.listeners.add(self.ended)

    async def open(self) -> None:
        await self._attempts.open()

    async def close(self) -> None:
        await self._attempts.close()

    async def first_due(self, others_than: Collection[DueItem]) -> DueItem | None:
        """Return what is due next."""
        found = await self._fires.peek(FOREVER_MS, len(others_than) + 1)
        return next((item for item in found if item not in others_than), None)

    async def deliver_due(self) -> int:
        """Deliver what is due now, once, and return how many fires that were. Afterwards, more may be due."""
        claimed = await self._fires.claim(self._request(ClaimRequest))
        leased = await self._fires.lease(self._request(LeaseRequest))
        claims = sorted([*claimed, *leased], key=_in_order)
        for claim in claims:
            self._refuse_without_target(claim)
            self._dispatcher.take([claim])
            await self._dispatcher.finish()
        await self._writer.write_all()
        return len(claims)

    def _refuse_without_target(self, claim: Claim) -> None:
        """Elsewhere the fire would wait for a worker that has the handler, for up to 30 days."""
        missing = self._attempts.targets.missing(claim)
        if missing is not None:
            raise InvalidInput(f"{claim.schedule.id} cannot be delivered: {missing.detail}")

    def _request(self, kind: type[R]) -> R:
        now_ms, config = self._clock.now_ms(), self._config
        return kind(
            now_ms=now_ms,
            limit=MAX_ROUND,
            worker=config.name,
            lease_ms=config.lease_ms,
            expires_at=now_ms + config.retention_ms,
            max_bytes=MAX_ROUND_BYTES,
        )


class EndedAttempts:
    """Listens for the entries of the history that attempts lead to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def round_ended(self, at_ms: int, seconds: float, claimed: int) -> None:
        """Nothing is noted of rounds."""

    def attempt_ended(self, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        if settlement.entry is not None:
            self.entries.append(settlement.entry)


def _in_order(claim: Claim) -> tuple[int, str, str, int]:
    return claim.due_at, *claim.schedule.id, claim.nominal_at


def _do_nothing() -> None:
    """There is always capacity for one attempt."""
