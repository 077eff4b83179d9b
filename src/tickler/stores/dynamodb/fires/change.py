"""Changes to leased fires: one conditional write each, on the head or on the fire's own item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tickler.dynamo.batches import Outcome, execute_many, get_many
from tickler.dynamo.codec import Attribute, Item
from tickler.dynamo.statements import Statement
from tickler.fires.settle import holds
from tickler.model.fire import Fire
from tickler.model.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires.layout import FOLLOWED, LEASE, OF_FIRE, fire_key, fire_of, head_of, same_lease
from tickler.stores.dynamodb.layout import text
from tickler.stores.dynamodb.table import Table, settled

# lost: the caller no longer has the lease; together: it takes more than one write.
Result = Literal["done", "lost", "together"]


class FireChange(NamedTuple):
    """A change to a leased fire. A single write may close it only if no fire waits for it."""

    fire: Fire
    values: Item
    removed: Sequence[str] = ()
    closes: bool = False


async def change_leased(table: Table, changes: Sequence[FireChange]) -> dict[str, Result]:
    """Apply changes and return their results by fire id. A fire is usually on its head, otherwise in its own item."""
    token = text(layout.new_revision())
    results: dict[str, Result] = {}
    apart = await _apart(table, [change.fire for change in changes])
    first = {change.fire.id: change for change in changes if change.fire.id not in apart}
    outcomes = settled(await execute_many(table.client, [_on_head(table, change, token) for change in first.values()]))
    for change, outcome in zip(first.values(), outcomes, strict=True):
        if outcome.done or _is_own(outcome, token):
            results[change.fire.id] = "done"
        elif outcome.item is not None and (result := _if_there(outcome.item, change)) is not None:
            results[change.fire.id] = result
        elif outcome.item is None or "spilled" not in outcome.item:
            results[change.fire.id] = "lost"
    second = {change.fire.id: change for change in changes if change.fire.id not in results}
    outcomes = settled(await execute_many(table.client, [_on_item(table, change, token) for change in second.values()]))
    for change, outcome in zip(second.values(), outcomes, strict=True):
        done = outcome.done and (outcome.item is not None or not change.closes)  # deleting an absent item succeeds too
        if done or _is_own(outcome, token):
            results[change.fire.id] = "done"
        else:
            results[change.fire.id] = (None if outcome.item is None else _if_there(outcome.item, change)) or "lost"
    return results


async def _apart(table: Table, fires: Iterable[Fire]) -> set[str]:
    """Return fires that are not on the head their schedule shares: a batch accepts one statement per item."""
    counts = Counter(Id(fire.owner, fire.key) for fire in fires)
    several = [id for id, count in counts.items() if count > 1]
    heads = await get_many(table.client, table.name, [layout.head_key(id) for id in several]) if several else []
    on_heads = {fire.id for fire in map(fire_of, heads) if fire is not None}
    return {fire.id for fire in fires if counts[Id(fire.owner, fire.key)] > 1 and fire.id not in on_heads}


def _on_head(table: Table, change: FireChange, token: Attribute) -> Statement:
    condition = dict(same_lease(change.fire))
    removed = OF_FIRE if change.closes else change.removed
    if change.closes:
        condition["spilled"] = None
    return table.update(head_of(change.fire), {**change.values, LEASE: token}, condition, removed)


def _on_item(table: Table, change: FireChange, token: Attribute) -> Statement:
    if change.closes:
        return table.delete(fire_key(change.fire), {**same_lease(change.fire), FOLLOWED: None}, old=True)
    return table.update(fire_key(change.fire), {**change.values, LEASE: token}, same_lease(change.fire), change.removed)


def _if_there(item: Item, change: FireChange) -> Result | None:
    """Return why a fire on this head or item could not be changed, or None if it is not there."""
    there = fire_of(item)
    if there is None or there.id != change.fire.id:
        return None
    return "together" if holds(there, change.fire) else "lost"


def _is_own(outcome: Outcome, token: Attribute) -> bool:
    """Tell whether an earlier attempt of the same request, whose response was lost, made the change."""
    return outcome.lost and outcome.item is not None and outcome.item.get(LEASE) == token
