"""Converts between stored items and `RawSchedule`, for copies that keep a schedule as stored."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping

import msgspec

from tickler.dynamo.codec import Attribute, Item, size_of
from tickler.stores.contents import IndexState, RawSchedule, without_place
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires.layout import LEASE, OF_FIRE, OWED
from tickler.stores.dynamodb.layout import number, text

OF_FIRES = frozenset({*OF_FIRE, *OWED, LEASE})  # attributes of a head that tell of fires, which a restore leaves
MAX_REASON_LENGTH = 200


def read_raw(head: Mapping[str, Attribute], body: bytes) -> RawSchedule | None:
    """Read a schedule or an index row. Returns None for the leftover of a finished row."""
    standing = _standing(head)
    if standing == "absent" and "version" not in head:
        return None
    place = head["was_due_at" if standing == "unreadable" else "next_fire_at"] if standing in ("indexed", "unreadable") else None
    owner, key = layout.id_of(head)
    raw = RawSchedule(
        owner=owner,
        key=key,
        when_text=head["when_text"]["S"],
        tz=head["tz"]["S"],
        version=_number(head, "version"),
        created_at=_number(head, "created_at"),
        updated_at=_number(head, "updated_at"),
        enabled="enabled" not in head or head["enabled"]["BOOL"],
        body=body.decode() if "version" in head else "{}",
        standing=standing,
        next_fire_at=None if place is None else int(place["N"]),
        ends_at=_number(head, "ends_at") if "ends_at" in head else None,
        offset_ms=_number(head, "offset_ms"),
        format=layout.format_of(head),
        reason=head["reason"]["S"] if "reason" in head else None,
    )
    return without_place(raw)


def raw_items(raw: RawSchedule, home: str, shards: int) -> tuple[Item, Item | None]:
    """Return the head, and a body item if the body does not fit into it.

    The body item is named by its content, so that it can be written before the head, and again. Raises `InvalidSchedule` for a
    head that is too large.
    """
    head: Item = {
        **layout.head_key(raw.id),
        "when_text": text(raw.when_text),
        "tz": text(raw.tz),
        "format": number(raw.format),
        "revision": text(layout.new_revision()),
        "home": text(home),
        **_index_attributes(raw, home, shards),
    }
    if not raw.managed:
        layout.check_head(head, layout.CLAIM_BYTES)
        return head, None
    for name in ("version", "created_at", "updated_at"):
        head[name] = number(getattr(raw, name))
    head["enabled"] = {"BOOL": raw.enabled}
    if raw.has_target:
        head["has_target"] = number(len(raw.body.encode()))
    body = _put_body(head, raw)
    layout.check_head(head, layout.CLAIM_BYTES + layout.FIRE_BYTES if raw.has_target else layout.CLAIM_BYTES)
    return head, body


def _standing(head: Mapping[str, Attribute]) -> IndexState:
    if "next_fire_at" in head:
        return "indexed"
    aside: IndexState = head["aside"]["S"] if "aside" in head else "absent"
    return aside


def _index_attributes(raw: RawSchedule, home: str, shards: int) -> Item:
    """Return the attributes of the indexes. A row without a schedule is listed only if it was set aside."""
    attributes: Item = {}
    listed_as = "active" if raw.enabled else "paused"
    if raw.standing == "indexed":
        attributes |= {
            "next_fire_at": number(raw.next_fire_at or 0),
            "due_shard": text(layout.due_shard(raw.id, home, shards)),
        }
    elif raw.standing in ("unreadable", "finished"):
        listed_as = raw.standing
        attributes["aside"] = text(raw.standing)
    if raw.standing == "unreadable":
        attributes |= {"was_due_at": number(raw.next_fire_at or 0), "reason": text((raw.reason or "")[:MAX_REASON_LENGTH])}
    if raw.ends_at is not None:
        attributes["ends_at"] = number(raw.ends_at)
    if raw.offset_ms:
        attributes["offset_ms"] = number(raw.offset_ms)
    if raw.managed or raw.standing == "unreadable":
        attributes["listed"] = text(layout.listed_in(listed_as, raw.id))
    return attributes


def _put_body(head: Item, raw: RawSchedule) -> Item | None:
    """Put the body on the head if it fits; otherwise return a body item. A body that is not valid JSON is not split."""
    try:
        on_head, rest = layout.split_body(raw.body.encode())
    except msgspec.DecodeError:
        on_head, rest = {}, raw.body.encode()
    head |= on_head
    if rest == b"{}":
        return None
    if size_of(head) + len("body") + len(rest) <= layout.INLINE_BYTES:
        head["body"] = text(rest.decode())
        return None
    revision = text(urlsafe_b64encode(hashlib.blake2b(rest, digest_size=9, person=b"tickler-body").digest()).decode())
    head["body_revision"] = revision
    body: Item = {**layout.body_key(raw.id, revision), "body": text(rest.decode())}
    layout.check_body(body)
    return body


def _number(head: Mapping[str, Attribute], name: str) -> int:
    return int(head[name]["N"]) if name in head else 0
