"""Layout of fires in the table.

    pk                  sk                                  what
    owner#u1            head⇥u1⇥digest                      its open fire, in attributes of its own, if it has only one
    fires#u1⇥digest     open⇥001921406400000⇥fire_ab12…     another open fire, with the same attributes
    fires#u1⇥digest     waiting⇥001921410000000⇥fire_…      one that waits for an open one to be settled
    fires#u1⇥digest     dead⇥001921413600000⇥fire_…         one that failed for good

An open fire is in the index `open`, under its home region and a shard. Waiting and dead fires are in `listed`.

Every transaction that adds or deletes such an item gives the head a new value of `spilled` (of `dead`, for a dead fire). A writer
that has read both, and writes on condition that the value is unchanged, therefore knows all fires of the schedule. Only an open
fire may be deleted without that. It is marked `followed` if others wait and none is on the head: closing it must wake the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from tickler.dynamo.codec import Attribute, Item
from tickler.dynamo.statements import Condition
from tickler.model.fire import Fire, FireState, fire_id, read_holder
from tickler.model.schedule import Id
from tickler.stores.dynamodb.layout import due_shard, hash_of, head_key, id_of, number, shard_name, shard_of, text

FIRES = "fires#"
BUCKETS = 16  # per list; a search by fire id reads one of them
MAX_REASON_BYTES = 80  # on a head, which must stay small; the history has the full reason

# Attributes of an open fire. Beside them, `lease` is a token by which the last writer recognises its own write.
OF_FIRE = ("fire_nominal", "fire_id", "fire_attempt", "fire_opened", "fire_worker", "fire_reason", "deliver_after", "open_shard")
LEASE = "lease"
FOLLOWED = "followed"
OWED = ("fire_nominal", "fire_id", "spilled", "dead")  # attributes of a head that tell of its schedule's fires

_SEPARATOR = "\t"


# Keys and shards.


def fire_key(fire: Fire) -> Item:
    """Return the key of a fire's own item, which exists if the fire is not on the head."""
    sort = _SEPARATOR.join((fire.state, f"{fire.nominal_at:015}", fire.id))
    return {"pk": text(partition(Id(fire.owner, fire.key))), "sk": text(sort)}


def partition(id: Id) -> str:
    return f"{FIRES}{id.owner}{_SEPARATOR}{id.key}"


def sort_prefix(state: FireState) -> str:
    return f"{state}{_SEPARATOR}"


def sort_after(state: FireState, place: tuple[int, str] | None) -> str:
    """Return a sort key that precedes all fires in this state after the place."""
    return sort_prefix(state) if place is None else f"{sort_prefix(state)}{place[0]:015}{_SEPARATOR}{place[1]}\0"


def is_fire(item: Mapping[str, Attribute]) -> bool:
    """Whether it is a fire's own item, and not a head."""
    return bool(item["pk"]["S"].startswith(FIRES))


def schedule_of(item: Mapping[str, Attribute]) -> Id:
    """Return the schedule of a fire's own item, or of a head."""
    if not is_fire(item):
        return id_of(item)
    owner, key = item["pk"]["S"].removeprefix(FIRES).split(_SEPARATOR)
    return Id(owner, key)


def place_of(item: Mapping[str, Attribute]) -> tuple[int, str]:
    """Return the place in a list of a fire with its own item, from its key alone."""
    _, nominal, id = item["sk"]["S"].split(_SEPARATOR)
    return int(nominal), id


def open_shard(fire: Fire, home: str, shards: int) -> str:
    """Return the shard of a fire with its own item. Fires of one schedule are spread over all shards."""
    return shard_name(home, shard_of(fire.id.encode(), shards))


def listed_in(state: FireState, fire_id: str) -> str:
    return f"{state}#{hash_of(fire_id.encode()) % BUCKETS}"


def listed_partitions(state: FireState) -> list[str]:
    return [f"{state}#{bucket}" for bucket in range(BUCKETS)]


# Fires.


def on_head(fire: Fire, home: str, shards: int) -> Item:
    """Return the attributes of an open fire on the head of its schedule."""
    short = None if fire.reason is None else shortened(fire.reason)
    return _open(fire, due_shard(Id(fire.owner, fire.key), home, shards), short)


def own_item(fire: Fire, home: str, shards: int) -> Item:
    """Return the item of a fire that is not on the head."""
    if fire.state == "open":
        return fire_key(fire) | _open(fire, open_shard(fire, home, shards), fire.reason)
    return fire_key(fire) | _fire(fire, fire.reason) | {"listed": text(listed_in(fire.state, fire.id))}


def shortened(reason: str) -> str:
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")


def fire_of(item: Mapping[str, Attribute]) -> Fire | None:
    """Read a fire from its own item or from a head. Returns None for a head without a fire."""
    if "fire_nominal" not in item:
        return None
    owner, key = schedule_of(item)
    nominal_at = int(item["fire_nominal"]["N"])
    state = _state(item)
    worker, lease_token = read_holder(item["fire_worker"]["S"]) if "fire_worker" in item else (None, None)
    return Fire(
        id=which(item),
        owner=owner,
        key=key,
        nominal_at=nominal_at,
        opened_at=int(item["fire_opened"]["N"]),
        attempt=int(item["fire_attempt"]["N"]),
        state=state,
        deliver_after=int(item["deliver_after"]["N"]) if state == "open" else None,
        worker=worker,
        reason=item["fire_reason"]["S"] if "fire_reason" in item else None,
        lease_token=lease_token,
    )


def which(item: Mapping[str, Attribute]) -> str:
    """Return the id of an item's fire. The attributes that `open` projects are enough."""
    if "fire_id" in item:
        return str(item["fire_id"]["S"])
    return fire_id(*schedule_of(item), int(item["fire_nominal"]["N"]))


def same_fire(fire: Fire | None) -> Condition:
    """Return the condition that an item has this fire, or, for None, that it has no fire."""
    if fire is None:
        return {"fire_nominal": None}
    return {"fire_nominal": number(fire.nominal_at), "fire_id": _own_id(fire)}


def same_lease(fire: Fire) -> Condition:
    """Return the condition that an item has this fire with this lease."""
    holder = None if fire.holder is None else text(fire.holder)
    return {**same_fire(fire), "fire_attempt": number(fire.attempt), "fire_worker": holder}


def unchanged(fire: Fire) -> Condition:
    """Return the condition that a fire is as it was read, and its lease was not extended."""
    if fire.deliver_after is None:
        return same_lease(fire)
    return {**same_lease(fire), "deliver_after": number(fire.deliver_after)}


def head_of(fire: Fire) -> Item:
    """Return the key of the head of its schedule."""
    return head_key(Id(fire.owner, fire.key))


def _open(fire: Fire, shard: str, reason: str | None) -> Item:
    deliver_after = fire.opened_at if fire.deliver_after is None else fire.deliver_after
    return _fire(fire, reason) | {"deliver_after": number(deliver_after), "open_shard": text(shard)}


def _fire(fire: Fire, reason: str | None) -> Item:
    attributes: Item = {
        "fire_nominal": number(fire.nominal_at),
        "fire_attempt": number(fire.attempt),
        "fire_opened": number(fire.opened_at),
    }
    own_id = _own_id(fire)
    if own_id is not None:
        attributes["fire_id"] = own_id
    if fire.holder is not None:
        attributes["fire_worker"] = text(fire.holder)
    if reason:
        attributes["fire_reason"] = text(reason)
    return attributes


def _own_id(fire: Fire) -> Attribute | None:
    """Return the id if it cannot be computed from the other attributes, as for a fire triggered manually."""
    return None if fire.id == fire_id(fire.owner, fire.key, fire.nominal_at) else text(fire.id)


def _state(item: Mapping[str, Attribute]) -> FireState:
    if not is_fire(item):
        return "open"
    state: FireState = item["sk"]["S"].partition(_SEPARATOR)[0]
    assert state in get_args(FireState)
    return state
