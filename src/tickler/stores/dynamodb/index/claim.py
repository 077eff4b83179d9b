"""Claims due rows by conditional updates of their items. A worker that loses a race does not get the row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tickler.dynamo.batches import Outcome, execute_many
from tickler.dynamo.statements import Statement
from tickler.errors import StoreUnavailable, TicklerError
from tickler.index.advance import AdvancePlan, DueRow, advance
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.index_row import IndexRow
from tickler.stores.dynamodb.index.claim_writes import ClaimWrites, DueReader, check_zones, report_outdated, seen
from tickler.stores.dynamodb.index.due_query import DueQuery, Route
from tickler.stores.dynamodb.layout import number
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.table import CHECK_POLICY, Table

log = logging.getLogger("tickler.index")


class ClaimResult(NamedTuple):
    row: IndexRow
    undo: Statement


class Claimer:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records
        self._route = Route()
        self._outdated = OutdatedReport()
        self.races_lost = 0

    async def claim(self, now_ms: int, limit: int) -> list[IndexRow]:
        work = asyncio.ensure_future(self._claim(now_ms, limit))
        try:
            claimed = await asyncio.shield(work)
        except asyncio.CancelledError:
            with suppress(TicklerError):  # the caller is gone: its rows become due again, if the undo succeeds
                await self._revert(await work)
            raise
        rows = [each.row for each in claimed]
        rows.sort(key=lambda row: row.next_fire_at)
        return rows

    async def _claim(self, now_ms: int, limit: int) -> list[ClaimResult]:
        shards = await self._table.shards()
        reader = DueReader(self._table.label)
        query = DueQuery(
            self._table.client, self._table.due, number(now_ms), reader.read, identity=lambda row: (row.owner, row.key)
        )
        query.set_partitions(self._route.rotate(shards), self._route.width(shards, limit))
        claimed: list[ClaimResult] = []
        try:
            while len(claimed) < limit and (due := await query.take(self._route.batch_size(limit - len(claimed)))):
                before = len(claimed)
                await self._claim_batch(due, now_ms, claimed)
                if self._route.note_batch(len(due), len(claimed) - before):
                    query.avoid_contention()
            if reader.newer_is_due:
                await report_outdated(self._outdated, self._records, now_ms)
        except Exception as error:
            if not claimed:
                raise
            log.warning("claimed %d of %d rows, then failed: %s", len(claimed), limit, error)  # the caller still gets them
        self._route.note_claim(full=len(claimed) == limit)
        return claimed

    async def _claim_batch(self, due: Sequence[DueRow], now_ms: int, claimed: list[ClaimResult]) -> None:
        """Claim these rows, and add to `claimed` those that no other worker got first."""
        result = advance(due, now_ms)
        await check_zones(self._records, result)
        settings = await self._table.settings.get()
        writes = ClaimWrites(self._table, result, settings.write_shards, now_ms)
        statements, undos = [], []
        for row in due:
            write = writes.of(row)
            statements.append(self._table.update(row.handle[0], write.values, seen(row), write.removed))
            undos.append(writes.undo(row, write))
        outcomes = await execute_many(self._table.client, statements)
        self._collect(due, undos, outcomes, writes, result, claimed)

    def _collect(
        self,
        due: Sequence[DueRow],
        undos: Sequence[Statement],
        outcomes: Sequence[Outcome | Exception],
        writes: ClaimWrites,
        result: AdvancePlan,
        claimed: list[ClaimResult],
    ) -> None:
        rows = {(row.owner, row.key): row for row in result.claimed}
        failure: Exception | None = None
        for row, undo, outcome in zip(due, undos, outcomes, strict=True):
            if isinstance(outcome, Exception):
                failure = outcome
            elif writes.is_claimed(outcome):
                if (row.owner, row.key) in rows:
                    claimed.append(ClaimResult(rows[row.owner, row.key], undo))
            elif outcome.lost:
                self.races_lost += 1
            else:
                failure = StoreUnavailable(
                    f"{self._table.label}: cannot claim {row.owner}/{row.key} ({outcome.code}): {CHECK_POLICY}"
                )
        aside = {row.id for row, outcome in zip(due, outcomes, strict=True) if writes.is_claimed(outcome)}
        log_set_aside([problem for problem in result.problems if problem.row.id in aside])
        if failure is not None:
            raise failure

    async def _revert(self, claimed: Sequence[ClaimResult]) -> None:
        await execute_many(self._table.client, [each.undo for each in claimed])
