"""Settles fires: records attempts, changes their fires, and deletes schedules that are finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tickler.dynamo.batches import get_many, run_concurrently
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.fires.settle import holds
from tickler.fires.settle import settled as settled_fire
from tickler.model.fire import Extension, Fire, Settlement
from tickler.model.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.change import FireChange, change_leased
from tickler.stores.dynamodb.fires.history import record
from tickler.stores.dynamodb.fires.layout import same_lease
from tickler.stores.dynamodb.fires.transaction import own_fires, read_owing
from tickler.stores.dynamodb.layout import number, text
from tickler.stores.dynamodb.table import TRIES, Table, all_of, settled
from tickler.stores.dynamodb.transactions import Delete, Write, write_all


class Settler:
    def __init__(self, table: Table) -> None:
        self._table = table

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, expires_at: int) -> list[Fire]:
        """Record entries first: a crash in between may cause an extra attempt, but never an unrecorded one."""
        await record(self._table, [each.entry for each in settlements if each.entry is not None], expires_at)
        latest = _latest(each.fire for each in settlements if each.fire is not None)
        lost = [each.fire for each in settlements if each.fire is not None and each.fire is not latest[each.fire.id]]
        finished = {each.id for each in settlements if each.delete_schedule}
        settlements = [each for each in settlements if each.fire is not None and each.fire is latest[each.fire.id]]
        alone = [(each, change) for each in settlements if (change := _change(each, now_ms)) is not None]
        results = await change_leased(self._table, [change for _, change in alone])
        together: defaultdict[Id, list[Settlement]] = defaultdict(list)
        for each in settlements:
            assert each.fire is not None
            result = results.get(each.fire.id, "together")
            if result == "lost":
                lost.append(each.fire)
            elif result == "together":
                together[each.id].append(each)
        for some in all_of(await run_concurrently(list(together.values()), lambda some: self._in_turn(some, now_ms))):
            lost += some
        all_of(await run_concurrently(list(finished), self._delete_finished))
        return lost

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        latest = _latest(fires)
        changes = [FireChange(fire, {"deliver_after": number(until_ms)}) for fire in latest.values()]
        results = await change_leased(self._table, changes)
        lost = [fire for fire in fires if fire is not latest[fire.id] or results[fire.id] == "lost"]
        return Extension(lost, [fire for fire in latest.values() if results[fire.id] == "together"])  # changed meanwhile

    async def _in_turn(self, settlements: Sequence[Settlement], now_ms: int) -> list[Fire]:
        """Settle fires of one schedule in turn, and return those whose lease is no longer the caller's."""
        return [each.fire for each in settlements if each.fire is not None and not await self._close(each, each.fire, now_ms)]

    async def _close(self, settlement: Settlement, fire: Fire, now_ms: int) -> bool:
        """Close a fire, and in the same transaction add it as dead or wake the next. Return False if the lease is lost."""
        for attempt in range(1, TRIES + 1):
            owing = await read_owing(self._table, settlement.id)
            found = None if owing is None else await owing.find(fire)
            if owing is None or found is None or not holds(found, fire):
                return False
            owing.close(found, same_lease(found))
            if (after := settled_fire(found, settlement, now_ms)) is not None:
                owing.add(after)
            owing.wake(now_ms)
            if not await owing.write():
                return True
            await pause(attempt)
        raise self._table.contended(settlement.id)

    async def _delete_finished(self, id: Id) -> None:
        """Delete a schedule if it is finished and has no fires."""
        for attempt in range(1, TRIES + 1):
            heads = await get_many(self._table.client, self._table.name, [layout.head_key(id)])
            if not heads or not _is_finished(heads[0]):
                return
            head = heads[0]
            if ("spilled" in head or "dead" in head) and await own_fires(self._table, id, None, limit=1):
                return
            (outcome,) = settled(await write_all(self._table, [_deletion(id, head)]))
            if outcome.done:
                return
            await pause(attempt)
        raise self._table.contended(id)


def _latest(fires: Iterable[Fire]) -> dict[str, Fire]:
    """Return the latest lease of each fire by id. A worker that leased a fire again may also settle its earlier, lost lease.

    The attempt alone does not tell them apart: it restarts when a person retries a dead fire.
    """
    latest: dict[str, Fire] = {}
    for fire in fires:
        if fire.id not in latest or _age(fire) > _age(latest[fire.id]):
            latest[fire.id] = fire
    return latest


def _age(fire: Fire) -> tuple[int, int]:
    return fire.lease_token or 0, fire.attempt


def _change(settlement: Settlement, now_ms: int) -> FireChange | None:
    """Return what to write if one write is enough: None without a fire, and for a fire that becomes dead."""
    fire = settlement.fire
    if fire is None or settlement.then == "dead":
        return None
    after = settled_fire(fire, settlement, now_ms)
    if after is None:
        return FireChange(fire, {}, closes=True)
    values: Item = {"deliver_after": number(after.deliver_after or now_ms), "fire_attempt": number(after.attempt)}
    if after.reason and after.reason != fire.reason:  # the stored reason may be longer than a head has room for
        values["fire_reason"] = text(fire_layout.shortened(after.reason))
    return FireChange(fire, values, ["fire_worker"] if after.reason else ["fire_worker", "fire_reason"])


def _is_finished(head: Item) -> bool:
    finished = head.get("aside") == text("finished") and head.get("enabled") == {"BOOL": True}
    return "version" in head and finished and "next_fire_at" not in head and "fire_nominal" not in head


def _deletion(id: Id, head: Item) -> list[Write]:
    names = ("revision", "aside", "next_fire_at", *fire_layout.OWED)
    writes: list[Write] = [Delete(layout.head_key(id), {name: head.get(name) for name in names})]
    if "body_revision" in head:
        writes.append(Delete(layout.body_key(id, head["body_revision"]), {}))
    return writes
