"""How things lie in the table: one item a schedule, its *head*, and what is too large for it in a *body* item beside it.

    pk              sk                      what
    owner#u1        head⇥u1⇥digest          the schedule, or a row of the index alone; in `due` only while it will fire
    owner#u1        body⇥digest⇥x3Fk…       target and payload, where they do not fit into the head, which names this one
    record#worker   host:1                  a record; in `due` under `expires` if it does expire
    tickler         settings                the shards, and the version of this layout

and what is owed, for which see `fire_layout.py` and `history.py`. `due` is keyed on `due_shard` and `next_fire_at`, `open` on
`open_shard` and `deliver_after`, `listed` on the attribute of that name and `sk`. Heads stay under 1 KB: a claim then costs one
unit for the head, two for its entry in `due`, which moves, and one for that in `open`, if there is a fire.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tickler.dynamo.codec import Attribute, Item, size_of
from tickler.errors import InvalidSchedule
from tickler.index.advance import ROW_FORMAT, DueRow
from tickler.model.index_row import IndexRow, SetAside
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.model.schedule_json import stored_schedule
from tickler.schedules.write import ScheduleChange
from tickler.stores.dynamodb.shards import hash_of, shard_of

DUE = "due"
OPEN = "open"
LISTED = "listed"
# What a claim reads of a due row. `version`, `policy` and `has_target` are there for claims that open fires; the last has the
# bytes of the schedule's body, so that a claim knows them before it takes the schedule and reads the body.
PROJECTED = ("when_text", "tz", "ends_at", "offset_ms", "format", "revision", "version", "policy", "has_target")
# What tells whether a fire may be leased, and which it is.
OPEN_PROJECTED = ("fire_nominal", "fire_id", "fire_worker")

SETTINGS_KEY: Item = {"pk": {"S": "tickler"}, "sk": {"S": "settings"}}
EXPIRES = "expires"
BUCKETS = 4  # of each list: puts and deletes write there, claims do not

MAX_HEAD_BYTES = 1024
CLAIM_BYTES = 64  # what a claim may add to a head: its token, a longer shard
FIRE_BYTES = 184  # what an open fire adds to it, for a worker's name of 40 bytes with a lease token, and without a reason
INLINE_BYTES = 640  # a head that is larger gives its body away, and has room for an open fire with all that there may be to say
MAX_SORT_KEY_BYTES = 1024
MAX_BODY_BYTES = 400 * 1024
MAX_NAME_BYTES = 160  # owner and key of this length fit into any head

_SEPARATOR = "\t"  # sorts before all that a name may have in it
_IN_INDEX = ("next_fire_at", "due_shard")
_ASIDE = ("aside", "reason", "was_due_at")


def new_revision() -> str:
    """Tells one writing of an item from any other: also from one after it was deleted and made again."""
    return secrets.token_urlsafe(6)


def text(value: str) -> Attribute:
    return {"S": value}


def number(value: int) -> Attribute:
    return {"N": str(value)}


# Keys and shards.


def head_key(id: Id) -> Item:
    return {"pk": text(f"owner#{id.owner}"), "sk": text(head_sort(id))}


def head_sort(id: Id) -> str:
    return f"head{_SEPARATOR}{id.owner}{_SEPARATOR}{id.key}"


def can_exist(id: Id) -> bool:
    """Whether there could be a head for it: DynamoDB takes no longer sort key."""
    return len(head_sort(id).encode()) <= MAX_SORT_KEY_BYTES


def owners_heads(owner: str) -> str:
    """What the sort keys of an owner's heads begin with."""
    return f"head{_SEPARATOR}{owner}{_SEPARATOR}"


ALL_HEADS = f"head{_SEPARATOR}"


def after_all(prefix: str) -> str:
    """A sort key after all that begin with `prefix`."""
    return prefix + "\U0010ffff"


def body_key(id: Id, revision: Attribute) -> Item:
    """Every writing of a body has a place of its own: bodies from two regions cannot be mixed up with each other's heads."""
    return {"pk": text(f"owner#{id.owner}"), "sk": text(f"body{_SEPARATOR}{id.key}{_SEPARATOR}{revision['S']}")}


def id_of(item: Mapping[str, Attribute]) -> Id:
    _, owner, key = item["sk"]["S"].split(_SEPARATOR)
    return Id(owner, key)


def place(item: Mapping[str, Attribute]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def record_key(kind: str, name: str) -> Item:
    return {"pk": text(f"record#{kind}"), "sk": text(name)}


def _identity(id: Id) -> bytes:
    return f"{id.owner}\0{id.key}".encode()


def due_shard(id: Id, home: str, shards: int) -> str:
    return shard_name(home, shard_of(_identity(id), shards))


def shard_name(home: str, shard: int) -> str:
    """The home region is part of it, so that a worker only ever sees what is its region's to claim."""
    return f"{home}#{shard}"


def listed_in(state: str, id: Id) -> str:
    return f"{state}#{(hash_of(_identity(id)) >> 32) % BUCKETS}"


def listed_partitions(state: str) -> list[str]:
    return [f"{state}#{bucket}" for bucket in range(BUCKETS)]


# Rows of the index.


def due_row(item: Mapping[str, Attribute]) -> DueRow:
    """Return a row of `due`. Its handle is the key, next_fire_at and revision that were seen: what a claim's condition needs."""
    id = id_of(item)
    next_fire_at = int(item["next_fire_at"]["N"])
    ends_at = item.get("ends_at")
    offset_ms = item.get("offset_ms")
    return DueRow(
        ({"pk": item["pk"], "sk": item["sk"]}, next_fire_at, item["revision"]["S"]),
        *id,
        item["when_text"]["S"],
        item["tz"]["S"],
        next_fire_at,
        None if ends_at is None else int(ends_at["N"]),
        0 if offset_ms is None else int(offset_ms["N"]),
        "version" in item,
    )


def format_of(item: Mapping[str, Attribute]) -> int:
    return int(item["format"]["N"])


def row_head(row: IndexRow, home: str, shards: int) -> Item:
    """The head of a row that no schedule stands behind."""
    id = Id(row.owner, row.key)
    head = {**head_key(id), **_row(row, home, shards), "home": text(home), "revision": text(new_revision())}
    check_head(head, CLAIM_BYTES)
    return head


def _row(row: IndexRow, home: str, shards: int) -> Item:
    attributes: Item = {
        "when_text": text(str(row.when)),
        "tz": text(row.when.tz),
        "next_fire_at": number(row.next_fire_at),
        "due_shard": text(due_shard(Id(row.owner, row.key), home, shards)),
        "format": number(ROW_FORMAT),
    }
    if row.ends_at is not None:
        attributes["ends_at"] = number(row.ends_at)
    if row.offset_ms:
        attributes["offset_ms"] = number(row.offset_ms)
    return attributes


def set_aside(item: Mapping[str, Attribute]) -> SetAside:
    return SetAside(
        *id_of(item),
        item["when_text"]["S"],
        item["tz"]["S"],
        int(item["was_due_at"]["N"]),
        item["reason"]["S"],
        "version" in item,
    )


# Schedules.


class WrittenItem(NamedTuple):
    """What a change makes of a head and its body. `removed` are attributes that the head loses."""

    head: Item
    removed: list[str]
    body: Item | None  # a body item to write; None where the one that is there, or its absence, is right
    body_goes: bool  # there is one, and it is not needed any more


def written(
    change: ScheduleChange, before: Mapping[str, Attribute] | None, body_before: bytes | None, home: str, shards: int
) -> WrittenItem:
    """The items of a changed schedule. `before` is its head as it was read, `body_before` all of its body."""
    id = change.schedule.id
    revision = new_revision()
    head: Item = {
        **head_key(id),
        "when_text": text(str(change.schedule.when)),
        "tz": text(change.schedule.tz),
        "enabled": {"BOOL": change.schedule.enabled},
        "version": number(change.version),
        "created_at": number(change.created_at),
        "updated_at": number(change.updated_at),
        "revision": text(revision),
        "format": number(ROW_FORMAT),
        "home": text(home),
    }
    if change.has_target:
        head["has_target"] = number(len(change.body))
    keeps: tuple[str, ...] = ()
    if change.move == "keep":
        keeps = (*_IN_INDEX, *_ASIDE, "listed", "offset_ms", "format", "claim")
        del head["format"]
    elif change.row is not None:
        head |= _row(change.row, home, shards)
        head["listed"] = text(listed_in("active", id))
    else:
        head["listed"] = text(listed_in("finished" if change.move == "finish" else "paused", id))
        if change.move == "finish":
            head["aside"] = text("finished")
    apart = "" if before is None or "body_revision" not in before else before["body_revision"]["S"]
    on_head, body = divided(change.body)
    head |= on_head
    body_item: Item | None = None
    if body != b"{}" and size_of(head) + len("body") + len(body) > INLINE_BYTES:
        if apart and body_before is not None and _same_rest(body_before, body):
            head["body_revision"] = text(apart)
        else:
            head["body_revision"] = text(revision)
            body_item = {**body_key(id, text(revision)), "body": text(body.decode())}
            check_body(body_item)
    elif body != b"{}":
        head["body"] = text(body.decode())
    check_head(head, CLAIM_BYTES + FIRE_BYTES if change.has_target else CLAIM_BYTES)
    removed = [] if before is None else [name for name in _OPTIONAL if name in before and name not in head and name not in keeps]
    return WrittenItem(head, removed, body_item, bool(apart) and "body_revision" not in head)


# `ttl` and `claim` may be left of a row of the index alone, which a schedule takes over.
_OF_BODY = ("ends_at", "policy", "has_target", "body", "body_revision")
_OPTIONAL = (*_IN_INDEX, *_ASIDE, *_OF_BODY, "listed", "offset_ms", "ttl", "claim")


def divided(body: bytes) -> tuple[Item, bytes]:
    """What of a schedule's body is always on the head, since claims need it, and the rest."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    on_head: Item = {}
    if "policy" in fields:
        on_head["policy"] = text(bytes(fields.pop("policy")).decode())
    if "ends_at" in fields and bytes(fields["ends_at"]).isdigit():
        on_head["ends_at"] = {"N": bytes(fields.pop("ends_at")).decode()}
    return on_head, msgspec.json.encode(fields)


def _same_rest(whole: bytes, rest: bytes) -> bool:
    """Whether what is not on the head of a body is this; no, where it does not read."""
    try:
        return divided(whole)[1] == rest
    except msgspec.DecodeError:
        return False


def whole_body(head: Mapping[str, Attribute], body: Mapping[str, Attribute] | None) -> bytes:
    """The body as `encode_body` made it, from where its parts lie; one that does not read is left as it is."""
    kept = (head if body is None else body).get("body")
    try:
        fields = {} if kept is None else msgspec.json.decode(kept["S"], type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        assert kept is not None
        return str(kept["S"]).encode()
    if "policy" in head:
        fields["policy"] = msgspec.Raw(head["policy"]["S"].encode())
    if "ends_at" in head:
        fields["ends_at"] = msgspec.Raw(head["ends_at"]["N"].encode())
    return msgspec.json.encode(fields)


def body_bytes(item: Mapping[str, Attribute]) -> int:
    """Of the schedule's whole body, as the head and its entry in `due` have it.

    Where they do not say, as many as there may be: in heads that were written before the number was kept, whose `has_target` is
    a BOOL, and where a schedule without a target has its body apart.
    """
    kept = item.get("has_target")
    if kept is not None and "N" in kept:
        return int(kept["N"])
    return MAX_BODY_BYTES if kept is not None or "body_revision" in item else 0


def read_schedule(head: Mapping[str, Any], body: bytes) -> StoredSchedule:
    next_fire_at = head.get("next_fire_at")
    aside: State | None = head["aside"]["S"] if "aside" in head else None
    owner, key = id_of(head)
    return stored_schedule(
        owner=owner,
        key=key,
        when_text=head["when_text"]["S"],
        tz=head["tz"]["S"],
        enabled=head["enabled"]["BOOL"],
        version=int(head["version"]["N"]),
        created_at=int(head["created_at"]["N"]),
        updated_at=int(head["updated_at"]["N"]),
        body=body,
        next_fire_at=None if next_fire_at is None else int(next_fire_at["N"]),
        aside=aside,
        reason=head["reason"]["S"] if "reason" in head else None,
    )


def check_head(head: Item, room: int) -> None:
    """A head that is larger would cost every claim more; `InvalidSchedule` says what to shorten."""
    size = size_of(head) + room
    if size <= MAX_HEAD_BYTES:
        return
    parts = {"owner": len(head["pk"]["S"].encode()) * 2, "key": len(id_of(head).key.encode())}
    parts |= {
        name: len(head[field]["S"].encode()) for name, field in (("when", "when_text"), ("policy", "policy")) if field in head
    }
    longest = max(parts, key=lambda name: parts[name])
    raise InvalidSchedule(
        longest,
        f"makes what a claim has to write {size} bytes long, and on DynamoDB {MAX_HEAD_BYTES} are allowed: shorten it "
        f"(owner counts twice; {', '.join(f'{name} {length}' for name, length in parts.items())})",
    )


def check_body(body: Item) -> None:
    size = size_of(body)
    if size > MAX_BODY_BYTES:
        raise InvalidSchedule("payload", f"makes an item of {size} bytes: DynamoDB keeps {MAX_BODY_BYTES}; store a reference")
