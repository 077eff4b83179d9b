"""The fires of one schedule, and changes to them that are written in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tickler.dynamo.batches import gathered, get_many
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition
from tickler.dynamo.transactions import TransactionPart
from tickler.fires.settle import next_to_wake, woken
from tickler.model.fire import Entry, Fire, FireState
from tickler.model.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.history import inserts
from tickler.stores.dynamodb.fires.layout import FOLLOWED, OF_FIRE, fire_key, fire_of
from tickler.stores.dynamodb.layout import text
from tickler.stores.dynamodb.table import Table, all_of
from tickler.stores.dynamodb.transactions import Delete, Insert, Update, Write, write_transaction

ENOUGH = 2  # fires of each state to read: tells whether one is left after another is closed


async def read_owing(table: Table, id: Id) -> FireTransaction | None:
    """Read a schedule and its fires consistently. None when there is no such schedule."""
    heads = await get_many(table.client, table.name, [layout.head_key(id)]) if layout.can_exist(id) else []
    if not heads or "version" not in heads[0]:
        return None
    head = heads[0]
    settings = await table.settings.get()
    if "spilled" not in head:
        return FireTransaction(table, head, [], [], settings.write_shards)
    opened, waiting = all_of(await gathered(own_fires(table, id, state, limit=ENOUGH) for state in ("open", "waiting")))
    return FireTransaction(table, head, opened, waiting, settings.write_shards)


async def own_fires(
    table: Table, id: Id, state: FireState | None, *, after: tuple[int, str] | None = None, limit: int | None = None
) -> list[Fire]:
    """Read the fires of a schedule that have their own items, consistently, by nominal instant and id."""
    condition, values = "pk = :fires", {":fires": text(fire_layout.partition(id))}
    if state is not None:
        low, high = fire_layout.sort_after(state, after), layout.after_all(fire_layout.sort_prefix(state))
        condition, values = f"{condition} AND sk BETWEEN :low AND :high", {**values, ":low": text(low), ":high": text(high)}
    request = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "ConsistentRead": True}
    return await table.first(request, fire_of, limit)


class FireTransaction:
    """Collects changes to a schedule's fires, which `write` applies together if nothing has changed since they were read."""

    def __init__(self, table: Table, head: Item, opened: Sequence[Fire], waiting: Sequence[Fire], shards: int) -> None:
        self.head = head
        self.on_head = fire_of(head)
        self._table = table
        self._shards = shards
        self._now_on_head = self.on_head
        self._opened = list(opened)
        self._waiting = list(waiting)
        self._values: Item = {}
        self._removed: list[str] = []
        self._condition: dict[str, dict[str, str] | None] = {
            "home": head["home"],
            "spilled": head.get("spilled"),
            **fire_layout.same_fire(self.on_head),
        }
        self._writes: list[Write] = []

    @property
    def busy(self) -> bool:
        """Tell whether a fire is open or waiting."""
        return self._now_on_head is not None or bool(self._opened or self._waiting)

    async def find(self, fire: Fire) -> Fire | None:
        """Return the fire as it is stored now."""
        if self.on_head is not None and self.on_head.id == fire.id:
            return self.on_head
        found = await get_many(self._table.client, self._table.name, [fire_key(fire)])
        return fire_of(found[0]) if found else None

    def advance(self, values: Item, removed: Sequence[str], seen: Condition) -> None:
        """Advance the schedule, as a claim does."""
        self._values |= values
        self._removed += removed
        self._condition |= seen

    def close(self, fire: Fire, condition: Condition) -> None:
        """Remove a fire, on a condition."""
        if self._now_on_head is not None and self._now_on_head.id == fire.id:
            self._condition |= condition
            self._now_on_head = None
            return
        self._writes.append(Delete(fire_key(fire), condition))
        self._opened = [each for each in self._opened if each.id != fire.id]
        self._waiting = [each for each in self._waiting if each.id != fire.id]

    def add(self, fire: Fire) -> None:
        """Add a fire. An open one goes onto the head, if that has none."""
        if fire.state == "open" and self._now_on_head is None:
            self._now_on_head = fire
            return
        self._writes.append(Insert(fire_layout.own_item(fire, self.head["home"]["S"], self._shards)))
        if fire.state == "dead":
            self._values["dead"] = text(layout.new_revision())
        else:
            (self._opened if fire.state == "open" else self._waiting).append(fire)

    def wake(self, now_ms: int) -> None:
        """Open the earliest waiting fire, unless another one is open."""
        on_head = [] if self._now_on_head is None else [self._now_on_head]
        first = next_to_wake([*on_head, *self._opened, *self._waiting])
        if first is not None:
            self.close(first, fire_layout.same_fire(first))
            self.add(woken(first, now_ms))

    def remember(self, entries: Iterable[Entry], expires_at: int) -> None:
        self._writes += inserts(entries, expires_at)

    async def write(self) -> list[Write]:
        """Write all changes, and return those whose condition failed; then nothing was changed."""
        return await write_transaction(self._table, self._all_writes())

    def parts(self) -> list[TransactionPart]:
        """Return all changes as parts of another transaction, with the same conditions."""
        name = f"the schedule {layout.id_of(self.head)}"
        return [TransactionPart(write.part(self._table.name), name) for write in self._all_writes()]

    def _all_writes(self) -> list[Write]:
        return [self._head_write(), *self._writes, *self._marks()]

    def _marks(self) -> list[Update]:
        """Mark an open fire that others wait for, if none is on the head, so that closing it wakes them."""
        if self._now_on_head is not None or not self._opened or not self._waiting:
            return []
        first = self._opened[0]
        return [Update(fire_key(first), {FOLLOWED: {"BOOL": True}}, fire_layout.same_fire(first))]

    def _head_write(self) -> Update:
        values, removed = dict(self._values), list(self._removed)
        if self._now_on_head is not self.on_head:
            on_head = {}
            if self._now_on_head is not None:
                on_head = fire_layout.on_head(self._now_on_head, self.head["home"]["S"], self._shards)
            values |= on_head
            removed += [name for name in OF_FIRE if name in self.head and name not in on_head]
        if self._opened or self._waiting:
            values["spilled"] = text(layout.new_revision())
        elif "spilled" in self.head:
            removed.append("spilled")
        if not values and not removed:  # DynamoDB refuses an empty update
            values["home"] = self.head["home"]
        return Update({"pk": self.head["pk"], "sk": self.head["sk"]}, values, self._condition, removed)
