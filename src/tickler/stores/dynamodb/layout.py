"""Layout of the table: one item per schedule, its *head*, and a *body* item for a target and payload that do not fit.

    pk              sk                      what
    owner#u1        head⇥u1⇥digest          the schedule, or a row of the index alone; in `due` only while it will fire
    owner#u1        body⇥digest⇥x3Fk…       target and payload, where they do not fit into the head, which names this one
    record#worker   host:1                  a record; in `due` under `expires` if it does expire
    tickler         settings                the shards, and the version of this layout

`fires/layout.py` and `fires/history.py` show the items of fires and history. `due` is keyed on `due_shard` and `next_fire_at`,
`open` on `open_shard` and `deliver_after`, `listed` on the attribute of that name and `sk`. Heads stay under 1 KB, so that a
claim costs one unit for the head, two for its entry in `due`, whose key changes, and one for an entry in `open`, if it opens a
fire.
"""

from __future__ import annotations

import hashlib
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

DUE = "due"
OPEN = "open"
LISTED = "listed"
# Attributes that a claim reads from `due`. `version`, `policy` and `has_target` are for claims that open fires. `has_target` is
# the size of the schedule's body, so that a claim knows it before it takes the schedule and reads the body.
PROJECTED = ("when_text", "tz", "ends_at", "offset_ms", "format", "revision", "version", "policy", "has_target")
# Attributes that identify a fire, and tell whether it may be leased.
OPEN_PROJECTED = ("fire_nominal", "fire_id", "fire_worker")

SETTINGS_KEY: Item = {"pk": {"S": "tickler"}, "sk": {"S": "settings"}}
EXPIRES = "expires"
BUCKETS = 4  # per list; only puts and deletes write there, claims do not

MAX_HEAD_BYTES = 1024
CLAIM_BYTES = 64  # that a claim may add to a head: its token, a longer shard
FIRE_BYTES = 184  # of an open fire with a worker's name of 40 bytes and a lease token, without a reason
INLINE_BYTES = 640  # a larger head moves its body into a body item, which leaves room for an open fire with all its attributes
MAX_SORT_KEY_BYTES = 1024
MAX_BODY_BYTES = 400 * 1024
MAX_NAME_BYTES = 160  # an owner and a key of this length fit into any head

_SEPARATOR = "\t"  # sorts before every character of a name
IN_INDEX = ("next_fire_at", "due_shard")
_ASIDE = ("aside", "reason", "was_due_at")


def new_revision() -> str:
    """Return a random token that tells this write of an item from all others, even after a delete and a new put."""
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
    """Whether its sort key is short enough for DynamoDB."""
    return len(head_sort(id).encode()) <= MAX_SORT_KEY_BYTES


def owners_heads(owner: str) -> str:
    """Return the sort key prefix of an owner's heads."""
    return f"head{_SEPARATOR}{owner}{_SEPARATOR}"


ALL_HEADS = f"head{_SEPARATOR}"


def after_all(prefix: str) -> str:
    """Return a sort key that follows all keys with this prefix."""
    return prefix + "\U0010ffff"


def body_key(id: Id, revision: Attribute) -> Item:
    """Return the key of a body. Each write of a body has its own key, so that no region's head can meet another's body."""
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


def shard_of(identity: bytes, shards: int) -> int:
    """Assign an item to a shard by a hash, so that similar names are spread over all shards."""
    return hash_of(identity) % shards


def hash_of(identity: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(identity, digest_size=8, person=b"tickler-shard").digest())


def due_shard(id: Id, home: str, shards: int) -> str:
    return shard_name(home, shard_of(_identity(id), shards))


def shard_name(home: str, shard: int) -> str:
    """Return a shard's name. It includes the home region, so that a worker sees only rows that its region may claim."""
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
    """Return the head of an index row without a schedule."""
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


class ScheduleItems(NamedTuple):
    """Head and body of a schedule after a change. `removed` are attributes to remove from the head."""

    head: Item
    removed: list[str]
    body: Item | None  # a body item to write; None if the stored one, or its absence, is right
    is_body_obsolete: bool  # a stored body item is no longer needed


def schedule_items(
    change: ScheduleChange, before: Mapping[str, Attribute] | None, body_before: bytes | None, home: str, shards: int
) -> ScheduleItems:
    """Return the items of a changed schedule. `before` is its head as read, `body_before` its whole body."""
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
        keeps = (*IN_INDEX, *_ASIDE, "listed", "offset_ms", "format", "claim")
        del head["format"]
    elif change.row is not None:
        head |= _row(change.row, home, shards)
        head["listed"] = text(listed_in("active", id))
    else:
        head["listed"] = text(listed_in("finished" if change.move == "finish" else "paused", id))
        if change.move == "finish":
            head["aside"] = text("finished")
    stored_body = "" if before is None or "body_revision" not in before else before["body_revision"]["S"]
    on_head, body = split_body(change.body)
    head |= on_head
    body_item: Item | None = None
    if body != b"{}" and size_of(head) + len("body") + len(body) > INLINE_BYTES:
        if stored_body and body_before is not None and _same_rest(body_before, body):
            head["body_revision"] = text(stored_body)
        else:
            head["body_revision"] = text(revision)
            body_item = {**body_key(id, text(revision)), "body": text(body.decode())}
            check_body(body_item)
    elif body != b"{}":
        head["body"] = text(body.decode())
    check_head(head, CLAIM_BYTES + FIRE_BYTES if change.has_target else CLAIM_BYTES)
    removed = [] if before is None else [name for name in _OPTIONAL if name in before and name not in head and name not in keeps]
    return ScheduleItems(head, removed, body_item, bool(stored_body) and "body_revision" not in head)


# `ttl` and `claim` may be left over from an index row without a schedule, whose head a new schedule takes over.
_OF_BODY = ("ends_at", "policy", "has_target", "body", "body_revision")
_OPTIONAL = (*IN_INDEX, *_ASIDE, *_OF_BODY, "listed", "offset_ms", "ttl", "claim")


def split_body(body: bytes) -> tuple[Item, bytes]:
    """Split a schedule's body into the attributes that claims need, which are always on the head, and the rest."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    on_head: Item = {}
    if "policy" in fields:
        on_head["policy"] = text(bytes(fields.pop("policy")).decode())
    if "ends_at" in fields and bytes(fields["ends_at"]).isdigit():
        on_head["ends_at"] = {"N": bytes(fields.pop("ends_at")).decode()}
    return on_head, msgspec.json.encode(fields)


def _same_rest(whole: bytes, rest: bytes) -> bool:
    """Whether `rest` is the part of a whole body that is not on the head. False if the body is not valid JSON."""
    try:
        return split_body(whole)[1] == rest
    except msgspec.DecodeError:
        return False


def join_body(head: Mapping[str, Attribute], body: Mapping[str, Attribute] | None) -> bytes:
    """Rebuild a body as `encode_body` made it, from the head and the body item. Invalid JSON is returned unchanged."""
    rest = (head if body is None else body).get("body")
    try:
        fields = {} if rest is None else msgspec.json.decode(rest["S"], type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        assert rest is not None
        return str(rest["S"]).encode()
    if "policy" in head:
        fields["policy"] = msgspec.Raw(head["policy"]["S"].encode())
    if "ends_at" in head:
        fields["ends_at"] = msgspec.Raw(head["ends_at"]["N"].encode())
    return msgspec.json.encode(fields)


def body_bytes(item: Mapping[str, Attribute]) -> int:
    """Return the size of a schedule's whole body, from its head or its entry in `due`.

    Returns the maximum where the size is unknown: in older heads, whose `has_target` is a BOOL, and for a schedule without
    a target that has a body item.
    """
    size = item.get("has_target")
    if size is not None and "N" in size:
        return int(size["N"])
    return MAX_BODY_BYTES if size is not None or "body_revision" in item else 0


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
    """Raise `InvalidSchedule`, which names what to shorten, for a head over 1 KB: each claim of it would cost more."""
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
        f"makes the item that a claim writes {size} bytes long, and on DynamoDB {MAX_HEAD_BYTES} are allowed: shorten it "
        f"(bytes: {', '.join(f'{name} {length}' for name, length in parts.items())}; owner counts twice)",
    )


def check_body(body: Item) -> None:
    size = size_of(body)
    if size > MAX_BODY_BYTES:
        raise InvalidSchedule("payload", f"makes an item of {size} bytes; DynamoDB allows {MAX_BODY_BYTES}: store a reference")
