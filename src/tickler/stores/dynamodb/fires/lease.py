"""Leases open fires: finds them in the sparse index `open`, reads them, decides, and takes those that no other worker does."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.batches import Outcome, get_many, run_concurrently
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Attribute, Item
from tickler.fires.byte_budget import ByteBudget
from tickler.fires.contract import LeaseRequest
from tickler.fires.lease import lease
from tickler.model.fire import Claim, Entry, Fire
from tickler.model.schedule import Id, StoredSchedule
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.history import inserts
from tickler.stores.dynamodb.fires.layout import fire_of, is_fire, schedule_of, unchanged
from tickler.stores.dynamodb.fires.transaction import read_owing
from tickler.stores.dynamodb.index.due_query import DueQuery, Route
from tickler.stores.dynamodb.layout import number, place, text
from tickler.stores.dynamodb.schedules.reads import read
from tickler.stores.dynamodb.table import TRIES, Table, all_of, settled
from tickler.stores.dynamodb.transactions import Delete, Update, Write, write_all

log = logging.getLogger("tickler.fires")


class Found(NamedTuple):
    """An open fire that is due for delivery, the key of its item, and its schedule, if that exists."""

    fire: Fire
    key: Item
    schedule: StoredSchedule | None


class Leaser:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._route = Route()
        self.races_lost = 0

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        shards, limit = await self._table.shards(), request.limit
        others = frozenset(request.except_owners)

        def read_key(item: Item) -> Item | None:
            if "fire_worker" in item and not request.expired:
                return None
            try:
                owner = schedule_of(item).owner
            except ValueError:
                log.warning("%s: skipped a malformed open item, which Tickler did not write: %s", self._table.label, item)
                return None
            return None if owner in others else {"pk": item["pk"], "sk": item["sk"]}

        query = DueQuery(self._table.client, self._table.open, number(request.now_ms), read_key, identity=place)
        query.set_partitions(self._route.rotate(shards), self._route.width(shards, limit))
        leased: list[Claim] = []
        budget, is_full = ByteBudget(request.max_bytes), False
        try:
            while len(leased) < limit and (keys := await query.take(self._route.batch_size(limit - len(leased)))):
                before = len(leased)
                found, is_full = await self._read(keys, request, budget)
                await self._lease_batch(found, request, leased)
                if is_full:
                    break
                if self._route.note_batch(len(keys), len(leased) - before):
                    query.avoid_contention()
        except Exception as error:
            if not leased:
                raise
            log.warning("leased %d of %d fires, then failed: %s", len(leased), limit, error)  # the caller still gets them
        self._route.note_claim(full=is_full or len(leased) == limit)
        return leased

    async def _read(self, keys: Sequence[Item], request: LeaseRequest, budget: ByteBudget) -> tuple[list[Found], bool]:
        """Read fires as stored, because the index lags and projects only a part. Also returns whether the budget ran out."""
        own = await get_many(self._table.client, self._table.name, [key for key in keys if is_fire(key)])
        known = await read(self._table, dict.fromkeys(map(schedule_of, keys)), budget)
        items: dict[tuple[str, str], Mapping[str, Attribute]] = {place(item): item for item in own}
        items |= {place(each.head): each.head for each in known.values()}
        found: list[Found] = []
        for key in keys:
            if (schedule := known.get(schedule_of(key))) is not None and schedule.is_left:
                return found, True
            fire = fire_of(items[place(key)]) if place(key) in items else None
            if fire is None or fire.deliver_after is None or (fire.worker and not request.expired):
                continue
            if fire.deliver_after > request.now_ms - (request.head_start_ms if fire.has_release_reason else 0):
                continue
            found.append(Found(fire, key, None if schedule is None else schedule.stored))
        return found, False

    async def _lease_batch(self, found: Sequence[Found], request: LeaseRequest, leased: list[Claim]) -> None:
        """Lease these fires, and add to `leased` those that no other worker got first."""
        decided = lease(((each.fire, each.schedule) for each in found), request)
        by_id = {each.fire.id: each for each in found}
        entries: defaultdict[str | None, list[Entry]] = defaultdict(list)
        for entry in decided.entries:
            entries[entry.fire_id].append(entry)
        token = text(layout.new_revision())
        fires = [claim.fire for claim in decided.claims if claim.fire is not None]
        plans = [_lease_writes(by_id[fire.id], fire, entries[fire.id], request, token) for fire in fires]
        outcomes = await write_all(self._table, plans)
        leased += [claim for claim, outcome in zip(decided.claims, outcomes, strict=True) if _is_leased(outcome, token)]
        self.races_lost += sum(not _is_leased(outcome, token) for outcome in outcomes)
        cancellations: list[list[Write]] = [
            [Delete(by_id[fire.id].key, unchanged(fire)), *inserts(entries[fire.id], request.expires_at)]
            for fire in decided.cancelled
        ]
        outcomes += await write_all(self._table, cancellations)
        died = await run_concurrently(
            decided.dead, lambda fire: self._mark_dead(by_id[fire.id].fire, fire, entries[fire.id], request)
        )
        settled(outcomes)
        all_of(died)

    async def _mark_dead(self, before: Fire, dead: Fire, entries: Sequence[Entry], request: LeaseRequest) -> None:
        """Mark a fire dead, unless it was changed in between, and open the next one that waits."""
        for attempt in range(1, TRIES + 1):
            transaction = await read_owing(self._table, Id(before.owner, before.key))
            if transaction is None or await transaction.find(before) != before:
                return
            transaction.close(before, unchanged(before))
            transaction.add(dead)
            transaction.remember(entries, request.expires_at)
            transaction.wake(request.now_ms)
            if not await transaction.write():
                return
            await pause(attempt)
        raise self._table.contended(Id(before.owner, before.key))


def _lease_writes(found: Found, fire: Fire, entries: Sequence[Entry], request: LeaseRequest, token: Attribute) -> list[Write]:
    assert fire.deliver_after is not None
    assert fire.holder is not None
    values: Item = {
        "fire_attempt": number(fire.attempt),
        "fire_worker": text(fire.holder),
        "deliver_after": number(fire.deliver_after),
        fire_layout.LEASE: token,
    }
    return [Update(found.key, values, unchanged(found.fire)), *inserts(entries, request.expires_at)]


def _is_leased(outcome: Outcome | Exception, token: Attribute) -> bool:
    """Whether this request leased the fire, if only by an earlier attempt whose response was lost."""
    if isinstance(outcome, Exception):
        return False
    return outcome.done or (outcome.lost and outcome.item is not None and outcome.item.get(fire_layout.LEASE) == token)
