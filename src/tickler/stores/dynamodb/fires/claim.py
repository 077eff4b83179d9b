"""Claims that open fires: one conditional update a schedule, 25 a request, that advances it and has its fire on it.

What takes more than that is done schedule by schedule, see `opening.py`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo import Condition, Item, Outcome, Statement, execute_many, get_many
from tickler.dynamo.batches import in_turns
from tickler.errors import InvalidSchedule, StoreUnavailable, TicklerError
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.claim import ClaimBatch, ClaimPlan, OpenedFire
from tickler.fires.contract import ClaimRequest
from tickler.index.advance import DueRow, RowProblem
from tickler.index.row_reports import OutdatedReport, log_set_aside
from tickler.model.fire import Claim, Fire
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.schedule_json import active_schedule, read_body
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.multi_fire_claim import DueSchedule, MultiFireClaim
from tickler.stores.dynamodb.index.claim_writes import ClaimWrite, ClaimWrites, DueReader, check_zones, report_outdated, seen, won
from tickler.stores.dynamodb.index.due_query import DueQuery, Route
from tickler.stores.dynamodb.layout import number
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.reads import read
from tickler.stores.dynamodb.table import Table

log = logging.getLogger("tickler.fires")

_NOTHING = OpenedFire([], [], [])


class WonClaim(NamedTuple):
    """A schedule that was claimed: its head, and its claims. `undo` gives it back, if no fire was opened.

    `only` is the fire that was opened, if it was the only one, and lies on the head.
    """

    row: DueRow
    owed: ClaimPlan
    head: Item
    claims: list[Claim]
    undo: Statement | None
    only: Fire | None = None

    @property
    def weight(self) -> int:
        """What of a claim's limit it takes up, as `ClaimBatch` counts: what it fires, or that it does not."""
        return len(self.owed.occurrences.fires) or 1


class ClaimTry(NamedTuple):
    """A due schedule that is being claimed. `owed` is None where it does not read."""

    due: DueSchedule
    step: ClaimWrite
    owed: ClaimPlan | None
    share: OpenedFire


class UnreadableRow(NamedTuple):
    """A schedule of which it turned out, when all of it was read, that it does not read; set aside on a condition."""

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

    async def claim(self, order: ClaimRequest) -> list[WonClaim]:
        """Those that were won, with their claims as they are to be delivered; no more of them once they come to `limit`, or
        when the next one would be too many bytes.
        """
        shards, limit = await self._table.shards(), order.limit
        reader, others = DueReader(self._table.label), frozenset(order.except_owners)

        def read_due(item: Item) -> DueSchedule | None:
            row = reader.read(item) if "has_target" in item else None
            if row is None or not row.managed or row.owner in others:
                return None
            return DueSchedule(row, int(item["version"]["N"]), layout.whole_body(item, None), layout.body_bytes(item))

        search = DueQuery(self._table.client, self._table.due, number(order.until_ms), read_due, identity=_identity)
        search.over(self._route.order(shards), self._route.width(shards, limit))
        taken: list[WonClaim] = []
        is_full = False
        try:
            while (left := limit - _weight(taken)) > 0 and (found := await search.take(self._route.step(left))):
                due = _within(found, order.max_bytes, taken)
                search.untake(found[len(due) :])
                if not due:
                    is_full = True
                    break
                before = len(taken)
                untried = await self._try(due, order, left, taken)
                search.untake(untried)
                if self._route.met_others(len(due) - len(untried), len(taken) - before):
                    search.go_elsewhere()
            if reader.newer_is_due:
                await report_outdated(self._outdated, self._records, order.now_ms)
        except Exception as error:
            if not taken:
                raise
            log.warning("a claim got %d of %d schedules and then failed: %s", len(taken), limit, error)  # they are ours
        self._route.learn(full=is_full or _weight(taken) >= limit)
        return taken

    async def give_back(self, taken: Sequence[WonClaim]) -> None:
        """Those that opened no fire, and would be lost."""
        await execute_many(self._table.client, [each.undo for each in taken if each.undo is not None])

    async def _try(self, due: Sequence[DueSchedule], order: ClaimRequest, most: int, taken: list[WonClaim]) -> list[DueSchedule]:
        """Claim these schedules, as far as nobody else does; add what was won. Those that were not tried: others are enough."""
        batch = ClaimBatch([each.claimable() for each in due], order, most)
        await check_zones(self._records, batch.advance)
        settings = await self._table.settings.get()
        steps = ClaimWrites(self._table, batch.advance, settings.write_shards, order.now_ms)
        shares = _shares(batch.open(()))
        owed: dict[Id, ClaimPlan | None] = {Id(each.row.owner, each.row.key): None for each in batch.advance.problems}
        owed |= {each.id: each for each in batch.owed}
        tried = [each for each in due if each.id in owed]
        tries = [ClaimTry(each, steps.of(each.row), owed[each.id], shares.get(each.id, _NOTHING)) for each in tried]
        simple = [each for each in tries if _is_simple(each.share)]
        outcomes = await execute_many(self._table.client, [self._statement(each, settings.write_shards) for each in simple])
        results: list[WonClaim | UnreadableRow | ClaimTry | Exception | None] = [
            self._result(each, outcome, steps) for each, outcome in zip(simple, outcomes, strict=True)
        ]
        aside = {each.due.id for each, outcome in zip(simple, outcomes, strict=True) if won(outcome, steps.token)}
        log_set_aside([each for each in batch.advance.problems if Id(each.row.owner, each.row.key) in aside])
        harder = [each for each in tries if not _is_simple(each.share)] + [each for each in results if isinstance(each, ClaimTry)]
        results += await in_turns(harder, lambda each: self._open(each, order, steps))
        unread = [each for each in results if isinstance(each, UnreadableRow)]
        unread += await self._hand_out([each for each in results if isinstance(each, WonClaim)], steps, taken)
        await self._set_aside(unread, steps)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [each for each in due if each.id not in owed]

    def _statement(self, each: ClaimTry, shards: int) -> Statement:
        """Of an exclusive schedule it must be known that nothing is open; of another, that there is room on the head."""
        values, condition = dict(each.step.values), dict(seen(each.due.row))
        for fire in each.share.fires:
            values |= fire_layout.on_head(fire, self._table.home, shards)
            condition["fire_nominal"] = None
        if each.owed is not None and each.owed.schedule.policy.overlap != "allow":
            condition |= {"fire_nominal": None, "spilled": None}
        return self._table.update(each.due.row.handle[0], values, condition, each.step.removed, old=True)

    def _result(self, each: ClaimTry, outcome: Outcome | Exception, steps: ClaimWrites) -> WonClaim | ClaimTry | Exception | None:
        """None when it is somebody else's, or does not read; the try itself when there was no room for a fire."""
        if isinstance(outcome, Exception):
            return outcome
        row = each.due.row
        if won(outcome, steps.token):
            if each.owed is None or outcome.item is None:
                return None
            undo = None if each.share.fires else steps.undo(row, each.step)
            only = each.share.fires[0] if each.share.fires else None
            return WonClaim(row, each.owed, outcome.item, each.share.claims, undo, only)
        if not outcome.lost:
            return StoreUnavailable(f"{self._table.label}: {row.owner}/{row.key} could not be claimed: {outcome.code}")
        if each.owed is not None and outcome.item is not None and _is_as_seen(outcome.item, row):
            return each
        self.races_lost += 1
        return None

    async def _open(self, each: ClaimTry, order: ClaimRequest, steps: ClaimWrites) -> WonClaim | UnreadableRow | None:
        assert each.owed is not None
        row = each.due.row
        opening = MultiFireClaim(self._table, order, steps, each.due, each.owed, each.share)
        try:
            head = await opening.run()
        except InvalidSchedule as error:
            return UnreadableRow(RowProblem(row, str(error), None), seen(row))
        if head is None:
            self.races_lost += 1
            return None
        undo = None if opening.opened else steps.undo(row, each.step)
        return WonClaim(row, each.owed, head, opening.claims, undo)

    async def _hand_out(self, wins: Sequence[WonClaim], steps: ClaimWrites, taken: list[WonClaim]) -> list[UnreadableRow]:
        """Give claims their schedules as they are stored; until now they had only what the index has of it.

        Those that do not read come back: the only fire of such a one goes with it; several come again when their leases end.
        """
        unread: list[UnreadableRow] = []
        try:
            schedules = await self._schedules(wins)
        except TicklerError:
            await self.give_back(wins)  # fires come again when their leases run out
            raise
        for each in wins:
            schedule = schedules.get(each.owed.id)
            if isinstance(schedule, InvalidSchedule):
                lease = {} if each.only is None else fire_layout.same_lease(each.only)
                gone = () if each.only is None else fire_layout.OF_FIRE
                unread.append(UnreadableRow(RowProblem(each.row, str(schedule), None), {**steps.own(each.row), **lease}, gone))
            elif schedule is not None:  # otherwise it was deleted just now, and its fires are cancelled
                taken.append(each._replace(claims=[claim._replace(schedule=schedule) for claim in each.claims]))
        return unread

    async def _set_aside(self, unread: Sequence[UnreadableRow], steps: ClaimWrites) -> None:
        """As far as nobody has changed them meanwhile."""
        statements = [steps.aside(each.problem, each.condition, each.gone) for each in unread]
        outcomes = await execute_many(self._table.client, statements)
        done = [each.problem for each, outcome in zip(unread, outcomes, strict=True) if won(outcome, steps.token)]
        log_set_aside(done)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                log.warning("a schedule that does not read could not be set aside, and is claimed again: %s", outcome)

    async def _schedules(self, wins: Sequence[WonClaim]) -> dict[Id, StoredSchedule | InvalidSchedule]:
        apart = {
            each.owed.id: layout.body_key(each.owed.id, each.head["body_revision"])
            for each in wins
            if "body_revision" in each.head
        }
        bodies: Mapping[tuple[str, str], Item] = {
            layout.place(item): item for item in await get_many(self._table.client, self._table.name, list(apart.values()))
        }
        found: dict[Id, StoredSchedule | InvalidSchedule] = {}
        changed: list[Id] = []
        for each in wins:
            id = each.owed.id
            body = bodies.get(layout.place(apart[id])) if id in apart else None
            if id in apart and body is None:
                changed.append(id)
            else:
                found[id] = _schedule(each, layout.whole_body(each.head, body))
        if changed:  # they were put again since, and have other bodies
            known = await read(self._table, changed)
            found |= {id: each.stored for id, each in known.items() if each.stored is not None}
        return found


def _identity(due: DueSchedule) -> tuple[str, str]:
    return due.row.owner, due.row.key


def _shares(opened: OpenedFire) -> dict[Id, OpenedFire]:
    """What a claim opens, by schedule."""
    shares: defaultdict[Id, OpenedFire] = defaultdict(lambda: OpenedFire([], [], []))
    for claim in opened.claims:
        shares[claim.schedule.id].claims.append(claim)
    for fire in opened.fires:
        shares[Id(fire.owner, fire.key)].fires.append(fire)
    for entry in opened.entries:
        shares[Id(entry.owner, entry.key)].entries.append(entry)
    return shares


def _is_simple(share: OpenedFire) -> bool:
    """Whether it takes one write: at most one fire, and nothing to remember."""
    return not share.entries and len(share.fires) <= 1


def _is_as_seen(head: Item, row: DueRow) -> bool:
    return all(head.get(name) == value for name, value in seen(row).items())


def _schedule(each: WonClaim, body: bytes) -> StoredSchedule | InvalidSchedule:
    version, created_at, updated_at = (int(each.head[name]["N"]) for name in ("version", "created_at", "updated_at"))
    try:
        return active_schedule(each.owed.row, read_body(version, created_at, updated_at, body))
    except InvalidSchedule as error:
        return error


def _within(due: Sequence[DueSchedule], max_bytes: int, taken: Sequence[WonClaim]) -> list[DueSchedule]:
    """The first of them whose bodies fit, beside those of what was taken."""
    budget = ByteBudget(max_bytes)
    budget.fitting(taken, lambda each: layout.body_bytes(each.head))
    return budget.fitting(due, lambda each: each.size)


def _weight(taken: Sequence[WonClaim]) -> int:
    return sum(each.weight for each in taken)
