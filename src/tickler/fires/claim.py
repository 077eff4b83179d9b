"""The pure middle of `fires.claim`: turns due rows and their schedules into claims, fires to open and skips to record.

A store selects and locks due rows, makes a `ClaimBatch` of them, looks up which of `exclusive` have an open fire, and applies
what `ClaimBatch.open` returns, all in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from tickler.errors import InvalidSchedule
from tickler.fires.contract import ClaimRequest
from tickler.fires.missed import Occurrences, Skip, occurrences
from tickler.index.advance import AdvancePlan, DueRow, RowProblem, advance
from tickler.model.fire import Claim, Entry, Fire, fire_id
from tickler.model.index_row import IndexRow
from tickler.model.policy import Policy
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.schedule_json import ReadBody, active_schedule, read_body
from tickler.when import When


class OpenPlan(NamedTuple):
    """The claims to return, the fires to open (leased or waiting), and the skips to record."""

    claims: list[Claim]
    fires: list[Fire]
    entries: list[Entry]

    def claimed(self, opened: Collection[str]) -> list[Claim]:
        """Return the claims whose fires were `opened` now. A fire that was open already belongs to another worker.

        That happens when an instant comes up twice, as after a resume by a caller whose clock is a little behind.
        """
        if len(opened) == len(self.fires):
            return self.claims
        return [claim for claim in self.claims if claim.fire is None or claim.fire.id in opened]


class ClaimPlan(msgspec.Struct, frozen=True, gc=False):
    """A due schedule, and its occurrences that fire or are skipped."""

    row: IndexRow
    schedule: StoredSchedule
    occurrences: Occurrences

    @property
    def id(self) -> Id:
        return self.schedule.id


class DueSchedule(DueRow, gc=False):
    """A due row with its schedule, both as a store keeps them."""

    version: int
    created_at: int
    updated_at: int
    body: str | bytes


class ClaimBatch:
    """The due schedules of one claim, and what it does with each.

    Rows whose schedule is unreadable are among the problems of `advance`. Rows after the one that reaches `most` occurrences
    stay as they are.
    """

    def __init__(self, rows: Sequence[DueSchedule], request: ClaimRequest, most: int | None = None) -> None:
        self._request = request
        self._now_ms = now_ms = request.now_ms
        read = [_read(row) for row in rows]
        unread = [each for each in read if isinstance(each, RowProblem)]
        if unread:
            rows = [row for row, each in zip(rows, read, strict=True) if not isinstance(each, RowProblem)]
        self.advance: AdvancePlan = advance(rows, now_ms)
        self.plans = _planned(rows, [each for each in read if not isinstance(each, RowProblem)], self.advance, now_ms)
        if most is not None and self.size > most and (kept := _first(self.plans, most)) < len(self.plans):
            self.plans = self.plans[:kept]
            ids = {plan.id for plan in self.plans}
            problems = self.advance.problems
            self.advance = advance([row for row in rows if row.id in ids], now_ms)
            self.advance.problems += problems
        self.advance.problems += unread

    @property
    def size(self) -> int:
        """Count occurrences; a schedule that fires none counts as one."""
        return sum(_weight(plan) for plan in self.plans)

    @property
    def exclusive(self) -> list[Id]:
        """Return schedules whose fires may not overlap. The store looks up which of them have one open."""
        return [plan.id for plan in self.plans if plan.schedule.policy.overlap != "allow"]

    def open(self, busy: Collection[Id]) -> OpenPlan:
        """Return the fires to open. `busy` are those of `exclusive` that have a fire open or waiting."""
        opened = OpenPlan([], [], [])
        for plan in self.plans:
            occurrences = plan.occurrences
            if len(occurrences.fires) == 1 and plan.schedule.policy.overlap == "allow":
                self._open_one(plan, occurrences.fires[0], opened)
            else:
                self._open_several(plan, plan.id in busy, opened)
            for skip in occurrences.skips:
                opened.entries.append(skip_entry(plan.id, skip, self._now_ms))
        opened.claims.sort(key=attrgetter("due_at"))
        return opened

    def _open_one(self, plan: ClaimPlan, nominal_at: int, opened: OpenPlan) -> None:
        schedule, due_at = plan.schedule, nominal_at + plan.row.offset_ms
        fire = None
        if schedule.policy.delivery != "at-most-once":
            fire = _leased(schedule, nominal_at, self._request)
            opened.fires.append(fire)
        opened.claims.append(tuple.__new__(Claim, (schedule, nominal_at, fire, due_at)))  # three times as fast as Claim(…)

    def _open_several(self, plan: ClaimPlan, busy: bool, opened: OpenPlan) -> None:
        overlap = plan.schedule.policy.overlap
        overlapping: list[int] = []
        for nominal_at in plan.occurrences.fires:
            if overlap == "allow" or not busy:
                self._open_one(plan, nominal_at, opened)
                busy = True
            elif overlap == "wait":
                opened.fires.append(_waiting(plan.id, nominal_at, self._now_ms))
            else:
                overlapping.append(nominal_at)
        if overlapping:
            skip = Skip("overlap", overlapping[0], overlapping[-1], len(overlapping))
            opened.entries.append(skip_entry(plan.id, skip, self._now_ms))


def _leased(schedule: StoredSchedule, nominal_at: int, request: ClaimRequest) -> Fire:
    owner, key = schedule.owner, schedule.key
    return Fire(
        id=fire_id(owner, key, nominal_at),
        owner=owner,
        key=key,
        nominal_at=nominal_at,
        opened_at=request.now_ms,
        attempt=1,
        deliver_after=request.now_ms + request.lease_ms,
        worker=request.worker,
    )


def skip_entry(id: Id, skip: Skip, now_ms: int) -> Entry:
    return Entry(
        owner=id.owner,
        key=id.key,
        nominal_at=skip.from_at,
        at=now_ms,
        happened="skipped",
        rule=skip.rule,
        until_at=skip.until_at,
        count=skip.count,
    )


def _waiting(id: Id, nominal_at: int, now_ms: int) -> Fire:
    return Fire(id=fire_id(*id, nominal_at), owner=id.owner, key=id.key, nominal_at=nominal_at, opened_at=now_ms, state="waiting")


def _read(row: DueSchedule) -> ReadBody | RowProblem:
    try:
        return read_body(row.version, row.created_at, row.updated_at, row.body)
    except InvalidSchedule as error:
        return RowProblem(row, str(error), None)


def _first(plans: Sequence[ClaimPlan], most: int) -> int:
    """Return how many schedules it takes to reach `most` occurrences."""
    size = 0
    for number, plan in enumerate(plans, 1):
        size += _weight(plan)
        if size >= most:
            return number
    return len(plans)


def _weight(plan: ClaimPlan) -> int:
    return len(plan.occurrences.fires) or 1


def _planned(rows: Sequence[DueSchedule], read: Sequence[ReadBody], result: AdvancePlan, now_ms: int) -> list[ClaimPlan]:
    """Return the plan of each claimed row, computed once for each (expression, zone, instant, policy)."""
    known: dict[tuple[object, ...], Occurrences] = {}
    latest: dict[tuple[When, int], int] = {}  # the last due instant, by expression and offset
    plans: list[ClaimPlan] = []
    if result.problems:
        unread = {id(problem.row) for problem in result.problems}
        read = [each for row, each in zip(rows, read, strict=True) if id(row) not in unread]
    for row, each in zip(result.claimed, read, strict=True):
        schedule = active_schedule(row, each)
        offset_ms = row.offset_ms
        nominal_at = row.next_fire_at - offset_ms
        last_at = latest.get((row.when, offset_ms))
        if last_at is None:
            last_at = latest[row.when, offset_ms] = row.when.last_before(now_ms - offset_ms) or 0
        if row.next_fire_at > now_ms or (last_at <= nominal_at and schedule.policy.missed != "skip"):
            found = tuple.__new__(Occurrences, ((nominal_at,), ()))  # the usual case: it is on time
        else:
            found = _late(known, row, schedule.policy, now_ms - offset_ms)
        plans.append(ClaimPlan(row, schedule, found))
    return plans


def _late(known: dict[tuple[object, ...], Occurrences], row: IndexRow, policy: Policy, now_at: int) -> Occurrences:
    kind = (row.when, row.next_fire_at, row.offset_ms, row.ends_at, policy.missed, policy.grace, policy.max_catchup)
    found = known.get(kind)
    if found is None:
        found = known[kind] = occurrences(row.when, policy, row.nominal_at, now_at, row.ends_at)
    return found
