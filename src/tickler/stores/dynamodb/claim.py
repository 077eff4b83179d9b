"""A claim: conditional updates of the items themselves, each on what was seen of it. Who loses one just does not get it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from tickler.advance import ROW_FORMAT, Advance, Problem, advance, lacking_zones
from tickler.dynamo import Item, Outcome, Statement, execute_many
from tickler.dynamo.codec import Attribute
from tickler.errors import StoreUnavailable, TicklerError, WorkerUnfit
from tickler.index import IndexRow
from tickler.reports import KIND, OutdatedReport, say_set_aside
from tickler.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.layout import DueRow, number, text
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.search import Route, Search
from tickler.stores.dynamodb.table import Table

LEFTOVER_MS = 24 * 3_600_000  # a row that is finished is kept so long, out of the index, for its claimer to recognise

log = logging.getLogger("tickler.index")


class Claimed(NamedTuple):
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
            with suppress(TicklerError):  # whoever asked has gone: what it would have claimed stays due, if that can be said
                await self._give_back(await work)
            raise
        rows = [each.row for each in claimed]
        rows.sort(key=lambda row: row.next_fire_at)
        return rows

    async def _claim(self, now_ms: int, limit: int) -> list[Claimed]:
        shards = await self._table.due_shards()
        newer_is_due = False

        def read(item: Item) -> DueRow | None:
            nonlocal newer_is_due
            try:
                if layout.format_of(item) <= ROW_FORMAT:
                    return layout.due_row(item)
            except (KeyError, ValueError):
                log.warning(
                    "%s: an item that only a foreign hand can have made is due, and left alone: %s", self._table.label, item
                )
                return None
            newer_is_due = True
            return None

        search = Search(self._table.client, self._table.due, number(now_ms), read, identity=lambda row: (row.owner, row.key))
        search.over(self._route.order(shards), self._route.width(shards, limit))
        claimed: list[Claimed] = []
        try:
            while len(claimed) < limit and (due := await search.take(self._route.step(limit - len(claimed)))):
                before = len(claimed)
                await self._try(due, now_ms, claimed)
                if self._route.met_others(len(due), len(claimed) - before):
                    search.go_elsewhere()
            if newer_is_due:
                await self._report_outdated(now_ms)
        except Exception as error:
            if not claimed:
                raise
            log.warning("a claim got %d of %d rows and then failed: %s", len(claimed), limit, error)  # they are ours: not lost
        self._route.learn(full=len(claimed) == limit)
        return claimed

    async def _try(self, due: Sequence[DueRow], now_ms: int, claimed: list[Claimed]) -> None:
        """Claim these rows, as far as nobody else does; add what was won."""
        result = advance(due, now_ms)
        lacking = await self._records.known_zones(lacking_zones(result.problems))
        if lacking:
            raise WorkerUnfit(lacking)
        token = text(layout.new_revision())
        settings = await self._table.settings.get()
        moved_to = {handle[0]["sk"]["S"]: at for handle, at in zip(result.moved, result.moved_to, strict=True)}
        problems = {problem.row.handle[0]["sk"]["S"]: problem for problem in result.problems}
        statements, undos = [], []
        for row in due:
            key, next_fire_at, revision = row.handle
            sort = key["sk"]["S"]
            shard = text(layout.due_shard(Id(row.owner, row.key), self._table.home, settings.write_shards))
            if sort in moved_to:
                values: Item = {"next_fire_at": number(moved_to[sort]), "due_shard": shard}
                removed: list[str] = []
            elif sort in problems:
                values, removed = _set_aside(row, problems[sort]), ["next_fire_at", "due_shard"]
            else:
                values, removed = _finish(row, now_ms), ["next_fire_at", "due_shard"]
            seen = {"next_fire_at": number(next_fire_at), "revision": text(revision)}
            statements.append(self._table.update(key, {**values, "claim": token}, seen, removed))
            undos.append(
                self._undo(row, shard, token, gone=[name for name in values if name not in seen and name != "due_shard"])
            )
        outcomes = await execute_many(self._table.client, statements)
        self._sort_out(due, undos, outcomes, token, result, claimed)

    def _sort_out(
        self,
        due: Sequence[DueRow],
        undos: Sequence[Statement],
        outcomes: Sequence[Outcome | Exception],
        token: Attribute,
        result: Advance,
        claimed: list[Claimed],
    ) -> None:
        rows = {(row.owner, row.key): row for row in result.claimed}
        failure: Exception | None = None
        for row, undo, outcome in zip(due, undos, outcomes, strict=True):
            if isinstance(outcome, Exception):
                failure = outcome
            elif _won(outcome, token):
                if (row.owner, row.key) in rows:
                    claimed.append(Claimed(rows[row.owner, row.key], undo))
            elif outcome.lost:
                self.races_lost += 1
            else:
                failure = StoreUnavailable(f"{self._table.label}: {row.owner}/{row.key} could not be claimed: {outcome.code}")
        say_set_aside([problem for problem, outcome in _with(result.problems, due, outcomes) if _won(outcome, token)])
        if failure is not None:
            raise failure

    def _undo(self, row: DueRow, shard: Attribute, token: Attribute, gone: Sequence[str]) -> Statement:
        """As it was before the claim, unless somebody has touched it since."""
        values = {"next_fire_at": number(row.next_fire_at), "due_shard": shard}
        removed = [name for name in gone if name != "listed"]
        if row.managed and "listed" in gone:
            values["listed"] = text(layout.listed_in("active", Id(row.owner, row.key)))
        key, _, revision = row.handle
        return self._table.update(key, values, {"claim": token, "revision": text(revision)}, [*removed, "claim"])

    async def _give_back(self, claimed: Sequence[Claimed]) -> None:
        await execute_many(self._table.client, [each.undo for each in claimed])

    async def _report_outdated(self, now_ms: int) -> None:
        report = self._outdated.make(now_ms)
        if report is not None:
            value, expires_at = report
            await self._records.put(KIND, self._outdated.name, value, now_ms=now_ms, expires_at=expires_at)


def _won(outcome: Outcome | Exception, token: Attribute) -> bool:
    """Done; or done by an earlier attempt of the same request, whose answer was lost."""
    if isinstance(outcome, Exception):
        return False
    return outcome.done or (outcome.lost and outcome.item is not None and outcome.item.get("claim") == token)


def _with(
    problems: Sequence[Problem], due: Sequence[DueRow], outcomes: Sequence[Outcome | Exception]
) -> list[tuple[Problem, Outcome | Exception]]:
    by_row: Mapping[tuple[str, str], Outcome | Exception] = {
        (row.owner, row.key): outcome for row, outcome in zip(due, outcomes, strict=True)
    }
    return [(problem, by_row[problem.row.owner, problem.row.key]) for problem in problems]


def _set_aside(row: DueRow, problem: Problem) -> Item:
    return {
        "aside": text("unreadable"),
        "reason": text(problem.reason[:200]),
        "was_due_at": number(row.next_fire_at),
        "listed": text(layout.listed_in("unreadable", Id(row.owner, row.key))),
    }


def _finish(row: DueRow, now_ms: int) -> Item:
    """A schedule is remembered as finished; a row of the index alone goes, by its time to live."""
    if row.managed:
        return {"aside": text("finished"), "listed": text(layout.listed_in("finished", Id(row.owner, row.key)))}
    return {"ttl": number((now_ms + LEFTOVER_MS) // 1000)}
