"""Claims that open fires, by one conditional update per schedule, 25 per request. It advances the schedule and adds its fire.

Schedules that need more than one write are claimed one by one in `multi_fire_claim.py`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.batches import Outcome, execute_many, get_many, run_concurrently
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition, Statement
from tickler.errors import InvalidSchedule, StoreUnavailable, TicklerError
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch, ClaimPlan, OpenPlan
from tickler.fires.contract import ClaimRequest
from tickler.index.advance import DueRow, RowProblem
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.fire import Claim, Fire
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.schedule_json import active_schedule, read_body
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.multi_fire_claim import DueSchedule, MultiFireClaim
from tickler.stores.dynamodb.index.claim_writes import ClaimWrite, ClaimWrites, DueReader, check_zones, report_outdated, seen
from tickler.stores.dynamodb.index.due_query import DueQuery, Route
from tickler.stores.dynamodb.layout import number
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.reads import read
from tickler.stores.dynamodb.table import CHECK_POLICY, Table

log = logging.getLogger("tickler.fires")

_NOTHING = OpenPlan([], [], [])


class Claimed(NamedTuple):
    """A claimed schedule, with its head and its claims. `undo` reverts the claim if it opened no fire.

    `only` is the opened fire if it is the only one, and is on the head.
    """

    row: DueRow
    plan: ClaimPlan
    head: Item
    claims: list[Claim]
    undo: Statement | None
    only: Fire | None = None

    @property
    def weight(self) -> int:
        """Its share of a claim's limit, as `ClaimBatch` counts it: its number of fires, at least 1."""
        return len(self.plan.occurrences.fires) or 1


class ClaimAttempt(NamedTuple):
    """A due schedule that is being claimed. `plan` is None if its row is unreadable."""

    due: DueSchedule
    write: ClaimWrite
    plan: ClaimPlan | None
    opened: OpenPlan


class UnreadableRow(NamedTuple):
    """A schedule found unreadable when its whole body was read. It is set aside if `condition` holds."""

    problem: RowProblem
    condition: Condition
    gone: Sequence[str] = ()


class FireClaimer:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records
        self._route = Route()
        self._outdated = OutdatedReport()
        self.races_lost = 0

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        """Claim due schedules, and return them with claims that are ready for delivery.

        Stops when their weight reaches `limit`, or when the next one would exceed `max_bytes`.
        """
        shards, limit = await self._table.shards(), request.limit
        reader, others = DueReader(self._table.label), frozenset(request.except_owners)

        def read_due(item: Item) -> DueSchedule | None:
            row = reader.read(item) if "has_target" in item else None
            if row is None or not row.managed or row.owner in others:
                return None
            return DueSchedule(row, int(item["version"]["N"]), layout.join_body(item, None), layout.body_bytes(item))

        query = DueQuery(self._table.client, self._table.due, number(request.until_ms), read_due, identity=_identity)
        query.set_partitions(self._route.rotate(shards), self._route.width(shards, limit))
        taken: list[Claimed] = []
        is_full = False
        try:
            while (left := limit - _weight(taken)) > 0 and (found := await query.take(self._route.batch_size(left))):
                due = _within(found, request.max_bytes, taken)
                query.put_back(found[len(due) :])
                if not due:
                    is_full = True
                    break
                before = len(taken)
                untried = await self._claim_batch(due, request, left, taken)
                query.put_back(untried)
                if self._route.note_batch(len(due) - len(untried), len(taken) - before):
                    query.avoid_contention()
            if reader.newer_is_due:
                await report_outdated(self._outdated, self._records, request.now_ms)
        except Exception as error:
            if not taken:
                raise
            log.warning("claimed %d of %d schedules, then failed: %s", len(taken), limit, error)  # the caller still gets them
        self._route.note_claim(full=is_full or _weight(taken) >= limit)
        return taken

    async def revert(self, taken: Sequence[Claimed]) -> None:
        """Revert claims that opened no fire, and would otherwise be lost."""
        await execute_many(self._table.client, [each.undo for each in taken if each.undo is not None])

    async def _claim_batch(
        self, due: Sequence[DueSchedule], request: ClaimRequest, most: int, taken: list[Claimed]
    ) -> list[DueSchedule]:
        """Claim these schedules, and add to `taken` those that no other worker got first.

        Returns those that were not tried, because the others reach the limit.
        """
        batch = ClaimBatch([each.claimable() for each in due], request, most)
        await check_zones(self._records, batch.advance)
        settings = await self._table.settings.get()
        writes = ClaimWrites(self._table, batch.advance, settings.write_shards, request.now_ms)
        opened = _by_schedule(batch.open(()))
        plans: dict[Id, ClaimPlan | None] = {Id(each.row.owner, each.row.key): None for each in batch.advance.problems}
        plans |= {each.id: each for each in batch.plans}
        planned = [each for each in due if each.id in plans]
        attempts = [ClaimAttempt(each, writes.of(each.row), plans[each.id], opened.get(each.id, _NOTHING)) for each in planned]
        simple = [each for each in attempts if _is_simple(each.opened)]
        outcomes = await execute_many(self._table.client, [self._statement(each, settings.write_shards) for each in simple])
        results: list[Claimed | UnreadableRow | ClaimAttempt | Exception | None] = [
            self._result(each, outcome, writes) for each, outcome in zip(simple, outcomes, strict=True)
        ]
        aside = {each.due.id for each, outcome in zip(simple, outcomes, strict=True) if writes.is_claimed(outcome)}
        log_set_aside([each for each in batch.advance.problems if Id(each.row.owner, each.row.key) in aside])
        multi_write = [each for each in attempts if not _is_simple(each.opened)]
        multi_write += [each for each in results if isinstance(each, ClaimAttempt)]
        results += await run_concurrently(multi_write, lambda each: self._open(each, request, writes))
        unreadable = [each for each in results if isinstance(each, UnreadableRow)]
        claimed = [each for each in results if isinstance(each, Claimed)]
        unreadable += await self._attach_schedules(claimed, writes, taken)
        await self._set_aside(unreadable, writes)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [each for each in due if each.id not in plans]

    def _statement(self, each: ClaimAttempt, shards: int) -> Statement:
        """Return the update that claims a schedule. Its head must have no open fire if one is added, or none may overlap."""
        values, condition = dict(each.write.values), dict(seen(each.due.row))
        for fire in each.opened.fires:
            values |= fire_layout.on_head(fire, self._table.home, shards)
            condition["fire_nominal"] = None
        if each.plan is not None and each.plan.schedule.policy.overlap != "allow":
            condition |= {"fire_nominal": None, "spilled": None}
        return self._table.update(each.due.row.handle[0], values, condition, each.write.removed, old=True)

    def _result(
        self, each: ClaimAttempt, outcome: Outcome | Exception, writes: ClaimWrites
    ) -> Claimed | ClaimAttempt | Exception | None:
        """Return None if another worker got it or it is unreadable; the attempt itself if the head already has a fire."""
        if isinstance(outcome, Exception):
            return outcome
        row = each.due.row
        if writes.is_claimed(outcome):
            if each.plan is None or outcome.item is None:
                return None
            undo = None if each.opened.fires else writes.undo(row, each.write)
            only = each.opened.fires[0] if each.opened.fires else None
            return Claimed(row, each.plan, outcome.item, each.opened.claims, undo, only)
        if not outcome.lost:
            return StoreUnavailable(f"{self._table.label}: cannot claim {row.owner}/{row.key} ({outcome.code}): {CHECK_POLICY}")
        if each.plan is not None and outcome.item is not None and _is_as_seen(outcome.item, row):
            return each
        self.races_lost += 1
        return None

    async def _open(self, each: ClaimAttempt, request: ClaimRequest, writes: ClaimWrites) -> Claimed | UnreadableRow | None:
        assert each.plan is not None
        row = each.due.row
        claim = MultiFireClaim(self._table, request, writes, each.due, each.plan, each.opened)
        try:
            head = await claim.run()
        except InvalidSchedule as error:
            return UnreadableRow(RowProblem(row, str(error), None), seen(row))
        if head is None:
            self.races_lost += 1
            return None
        undo = None if claim.has_opened else writes.undo(row, each.write)
        return Claimed(row, each.plan, head, claim.claims, undo)

    async def _attach_schedules(
        self, claimed: Sequence[Claimed], writes: ClaimWrites, taken: list[Claimed]
    ) -> list[UnreadableRow]:
        """Replace the part of each schedule that the index projects by the stored schedule, and add it to `taken`.

        Returns the unreadable ones. An only fire is removed with its row; several fires come again when their leases expire.
        """
        unreadable: list[UnreadableRow] = []
        try:
            schedules = await self._schedules(claimed)
        except TicklerError:
            await self.revert(claimed)  # fires come again when their leases expire
            raise
        for each in claimed:
            schedule = schedules.get(each.plan.id)
            if isinstance(schedule, InvalidSchedule):
                lease = {} if each.only is None else fire_layout.same_lease(each.only)
                gone = () if each.only is None else fire_layout.OF_FIRE
                problem = RowProblem(each.row, str(schedule), None)
                unreadable.append(UnreadableRow(problem, {**writes.own(each.row), **lease}, gone))
            elif schedule is not None:  # otherwise it was just deleted, and its fires cancelled
                taken.append(each._replace(claims=[claim._replace(schedule=schedule) for claim in each.claims]))
        return unreadable

    async def _set_aside(self, unreadable: Sequence[UnreadableRow], writes: ClaimWrites) -> None:
        """Set these rows aside, except those that were changed in between."""
        statements = [writes.aside(each.problem, each.condition, each.gone) for each in unreadable]
        outcomes = await execute_many(self._table.client, statements)
        done = [each.problem for each, outcome in zip(unreadable, outcomes, strict=True) if writes.is_claimed(outcome)]
        log_set_aside(done)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                log.warning("cannot set aside an unreadable schedule, which will be claimed again: %s", outcome)

    async def _schedules(self, claimed: Sequence[Claimed]) -> dict[Id, StoredSchedule | InvalidSchedule]:
        body_keys = {
            each.plan.id: layout.body_key(each.plan.id, each.head["body_revision"])
            for each in claimed
            if "body_revision" in each.head
        }
        bodies: Mapping[tuple[str, str], Item] = {
            layout.place(item): item for item in await get_many(self._table.client, self._table.name, list(body_keys.values()))
        }
        found: dict[Id, StoredSchedule | InvalidSchedule] = {}
        changed: list[Id] = []
        for each in claimed:
            id = each.plan.id
            body = bodies.get(layout.place(body_keys[id])) if id in body_keys else None
            if id in body_keys and body is None:
                changed.append(id)
            else:
                found[id] = _schedule(each, layout.join_body(each.head, body))
        if changed:  # they were written again, and have new bodies
            known = await read(self._table, changed)
            found |= {id: each.stored for id, each in known.items() if each.stored is not None}
        return found


def _identity(due: DueSchedule) -> tuple[str, str]:
    return due.row.owner, due.row.key


def _by_schedule(opened: OpenPlan) -> dict[Id, OpenPlan]:
    """Group the claims, fires and entries of a batch by schedule."""
    groups: defaultdict[Id, OpenPlan] = defaultdict(lambda: OpenPlan([], [], []))
    for claim in opened.claims:
        groups[claim.schedule.id].claims.append(claim)
    for fire in opened.fires:
        groups[Id(fire.owner, fire.key)].fires.append(fire)
    for entry in opened.entries:
        groups[Id(entry.owner, entry.key)].entries.append(entry)
    return groups


def _is_simple(opened: OpenPlan) -> bool:
    """Whether it takes one write: at most one fire, and no history entry."""
    return not opened.entries and len(opened.fires) <= 1


def _is_as_seen(head: Item, row: DueRow) -> bool:
    return all(head.get(name) == value for name, value in seen(row).items())


def _schedule(each: Claimed, body: bytes) -> StoredSchedule | InvalidSchedule:
    version, created_at, updated_at = (int(each.head[name]["N"]) for name in ("version", "created_at", "updated_at"))
    try:
        return active_schedule(each.plan.row, read_body(version, created_at, updated_at, body))
    except InvalidSchedule as error:
        return error


def _within(due: Sequence[DueSchedule], max_bytes: int, taken: Sequence[Claimed]) -> list[DueSchedule]:
    """Return the first schedules whose bodies fit into `max_bytes`, beside those already taken."""
    budget = ByteBudget(max_bytes)
    budget.fitting(taken, lambda each: layout.body_bytes(each.head))
    return budget.fitting(due, lambda each: each.size)


def _weight(taken: Sequence[Claimed]) -> int:
    return sum(each.weight for each in taken)
