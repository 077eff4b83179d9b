"""Leases of fires that are open: found in the sparse index `open`, read, decided on, and taken as far as nobody else does."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo import Item, Outcome, get_many
from tickler.dynamo.batches import in_turns
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Attribute
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
    """An open fire whose time has come, where it lies, and its schedule, if there is one."""

    fire: Fire
    key: Item
    schedule: StoredSchedule | None


class Leaser:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._route = Route()
        self.races_lost = 0

    async def lease(self, order: LeaseRequest) -> list[Claim]:
        shards, limit = await self._table.shards(), order.limit
        others = frozenset(order.except_owners)

        def read_key(item: Item) -> Item | None:
            if "fire_worker" in item and not order.expired:
                return None
            try:
                owner = schedule_of(item).owner
            except ValueError:
                log.warning("%s: an item that only a foreign hand can have made is open: %s", self._table.label, item)
                return None
            return None if owner in others else {"pk": item["pk"], "sk": item["sk"]}

        search = DueQuery(self._table.client, self._table.open, number(order.now_ms), read_key, identity=place)
        search.over(self._route.order(shards), self._route.width(shards, limit))
        leased: list[Claim] = []
        budget, is_full = ByteBudget(order.max_bytes), False
        try:
            while len(leased) < limit and (keys := await search.take(self._route.step(limit - len(leased)))):
                before = len(leased)
                found, is_full = await self._read(keys, order, budget)
                await self._try(found, order, leased)
                if is_full:
                    break
                if self._route.met_others(len(keys), len(leased) - before):
                    search.go_elsewhere()
        except Exception as error:
            if not leased:
                raise
            log.warning("a lease got %d of %d fires and then failed: %s", len(leased), limit, error)  # they are ours
        self._route.learn(full=is_full or len(leased) == limit)
        return leased

    async def _read(self, keys: Sequence[Item], order: LeaseRequest, budget: ByteBudget) -> tuple[list[Found], bool]:
        """As they are: the index may be behind, and shows only a part. And whether the budget ended before the keys did."""
        own = await get_many(self._table.client, self._table.name, [key for key in keys if is_fire(key)])
        known = await read(self._table, dict.fromkeys(map(schedule_of, keys)), budget)
        items: dict[tuple[str, str], Mapping[str, Attribute]] = {place(item): item for item in own}
        items |= {place(each.head): each.head for each in known.values()}
        found: list[Found] = []
        for key in keys:
            if (schedule := known.get(schedule_of(key))) is not None and schedule.is_left:
                return found, True
            fire = fire_of(items[place(key)]) if place(key) in items else None
            if fire is None or fire.deliver_after is None or (fire.worker and not order.expired):
                continue
            if fire.deliver_after > order.now_ms - (order.head_start_ms if fire.is_given_back else 0):
                continue
            found.append(Found(fire, key, None if schedule is None else schedule.stored))
        return found, False

    async def _try(self, found: Sequence[Found], order: LeaseRequest, leased: list[Claim]) -> None:
        """Lease these fires, as far as nobody else does; add what was won."""
        decided = lease(((each.fire, each.schedule) for each in found), order)
        by_id = {each.fire.id: each for each in found}
        entries: defaultdict[str | None, list[Entry]] = defaultdict(list)
        for entry in decided.entries:
            entries[entry.fire_id].append(entry)
        token = text(layout.new_revision())
        fires = [claim.fire for claim in decided.claims if claim.fire is not None]
        plans = [_taking(by_id[fire.id], fire, entries[fire.id], order, token) for fire in fires]
        outcomes = await write_all(self._table, plans)
        leased += [claim for claim, outcome in zip(decided.claims, outcomes, strict=True) if _is_taken(outcome, token)]
        self.races_lost += sum(not _is_taken(outcome, token) for outcome in outcomes)
        goers: list[list[Write]] = [
            [Delete(by_id[fire.id].key, unchanged(fire)), *inserts(entries[fire.id], order.expires_at)]
            for fire in decided.cancelled
        ]
        outcomes += await write_all(self._table, goers)
        buried = await in_turns(decided.dead, lambda fire: self._bury(by_id[fire.id].fire, fire, entries[fire.id], order))
        settled(outcomes)
        all_of(buried)

    async def _bury(self, before: Fire, dead: Fire, entries: Sequence[Entry], order: LeaseRequest) -> None:
        """Make it dead, unless somebody has it again, and let the next one have its turn."""
        for attempt in range(1, TRIES + 1):
            owing = await read_owing(self._table, Id(before.owner, before.key))
            if owing is None or await owing.find(before) != before:
                return
            owing.close(before, unchanged(before))
            owing.add(dead)
            owing.remember(entries, order.expires_at)
            owing.wake(order.now_ms)
            if not await owing.write():
                return
            await pause(attempt)
        raise self._table.contended(Id(before.owner, before.key))


def _taking(found: Found, fire: Fire, entries: Sequence[Entry], order: LeaseRequest, token: Attribute) -> list[Write]:
    assert fire.deliver_after is not None
    assert fire.holder is not None
    values: Item = {
        "fire_attempt": number(fire.attempt),
        "fire_worker": text(fire.holder),
        "deliver_after": number(fire.deliver_after),
        fire_layout.LEASE: token,
    }
    return [Update(found.key, values, unchanged(found.fire)), *inserts(entries, order.expires_at)]


def _is_taken(outcome: Outcome | Exception, token: Attribute) -> bool:
    """Done; or done by an earlier attempt of the same request, whose answer was lost."""
    if isinstance(outcome, Exception):
        return False
    return outcome.done or (outcome.lost and outcome.item is not None and outcome.item.get(fire_layout.LEASE) == token)
