"""Schedules as JSON: complete, as in the API and in exports, and the body that stores keep in addition to columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import msgspec

from tickler.clock import to_ms
from tickler.errors import InvalidInput, InvalidSchedule, InvalidWhen
from tickler.model.index_row import IndexRow
from tickler.model.payload import RawPayload, encodable_payload, is_untouched
from tickler.model.policy import DEFAULT_POLICY, Policy, policy_from_json, policy_to_json
from tickler.model.schedule import Schedule, State, StoredSchedule
from tickler.model.strict_json import read_json
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, read_target
from tickler.when import At, Unreadable, When, read_instant, read_when, when_from_json

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_LEVELS = 100
MAX_SIGNS = MAX_PAYLOAD_BYTES + 65_536  # brackets, quotes, commas and colons in the JSON of a schedule
_PLAIN = "use only dicts with text keys, lists, text, finite numbers, True, False and None"

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_OPENS = bytes.maketrans(b"[{]}", b"\1\1\0\0")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_FIELDS = frozenset(Schedule.__struct_fields__)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def schedule_to_json(schedule: Schedule) -> dict[str, object]:
    """Return plain JSON values, without defaults, with instants in milliseconds. `schedule_from_json` reads them back."""
    return _to_json(schedule, msgspec.to_builtins(schedule.payload))


def undecoded_json(schedule: Schedule) -> dict[str, object]:
    """Like `schedule_to_json`, but a payload that was not accessed stays encoded."""
    return _to_json(schedule, encodable_payload(schedule))


def encode_schedule(schedule: Schedule) -> bytes:
    """Encode a schedule. A payload that was not accessed is passed on as it is."""
    return _encode(undecoded_json(schedule))


def _to_json(schedule: Schedule, payload: object) -> dict[str, object]:
    fields: dict[str, object] = {"owner": schedule.owner, "key": schedule.key, "when": str(schedule.when), "tz": schedule.tz}
    body = _body(schedule, payload)
    fields |= {name: value if name == "payload" else msgspec.to_builtins(value) for name, value in body.items()}
    return fields | {"enabled": schedule.enabled}


def stored_to_json(schedule: StoredSchedule) -> dict[str, object]:
    """Like `schedule_to_json`, but always with the payload, and with version, state and times from the store."""
    return _stored_to_json(schedule, schedule.payload)


def encode_stored(schedule: StoredSchedule, more: Mapping[str, object] = MappingProxyType({})) -> bytes:
    """Encode a stored schedule with `more` fields. A payload that was not accessed is passed on as it is."""
    return _encode(_stored_to_json(schedule, encodable_payload(schedule)) | dict(more))


def _stored_to_json(schedule: StoredSchedule, payload: object) -> dict[str, object]:
    fields = _to_json(schedule, payload) | {
        "payload": payload,
        "state": schedule.state,
        "next_fire_at": schedule.next_fire_at,
        "version": schedule.version,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }
    return fields if schedule.reason is None else fields | {"reason": schedule.reason}


def read_schedule_json(data: bytes) -> Any:
    """Parse JSON that may be a schedule. `InvalidInput` if it is not JSON.

    Text with more brackets, quotes, commas and colons than a schedule can have is refused unparsed: parsing would take long.
    """
    if len(data) > MAX_SIGNS and len(data) - len(data.translate(None, b'[]{}",:')) > MAX_SIGNS:
        raise InvalidInput(f"has more values than a payload of {MAX_PAYLOAD_BYTES} bytes can have: store a reference")
    return read_json(data)


def schedule_from_json(fields: object, *, suggest: bool = True) -> Schedule:
    """Read a schedule. `InvalidSchedule` and `InvalidWhen` name the invalid field.

    The payload is encoded and checked here, so that a write only passes it on. This may take long, and can run in a thread.
    `suggest` is as in `parse_when`.
    """
    if not isinstance(fields, Mapping):
        raise InvalidSchedule("schedule", f"is a {type(fields).__name__}: give an object with owner, key and when")
    unknown = sorted(str(name) for name in fields if name not in _FIELDS)
    if unknown:
        raise InvalidSchedule(unknown[0], f"unknown field: use {', '.join(Schedule.__struct_fields__)}")
    nulls = [name for name in ("enabled", "delete_after") if name in fields and fields[name] is None]
    if nulls:
        raise InvalidSchedule(nulls[0], "is null: write true or false, or leave it out")
    missing = [name for name in ("owner", "key", "when") if fields.get(name) is None]
    if missing:
        raise InvalidSchedule(missing[0], "is missing: a schedule has an owner, a key and a when")
    values: dict[str, Any] = dict(fields)
    tz = values.pop("tz", None)
    values["when"] = when_from_json(values["when"], tz, suggest=suggest)
    if values.get("policy") is not None:
        values["policy"] = policy_from_json(values["policy"])
    for bound in ("starts_at", "ends_at"):
        if isinstance(values.get(bound), str):
            values[bound] = read_instant(values[bound], bound)
    values["payload"] = encoded_payload(values.get("payload"))
    return Schedule(**{name: value for name, value in values.items() if value is not None or name == "payload"})


def encode_body(schedule: Schedule, paused_because: str | None = None) -> bytes:
    """Encode the fields without a column of their own. `InvalidSchedule` if the payload is not plain JSON, or too large."""
    payload = encodable_payload(schedule)
    if payload is not None and not is_untouched(schedule):
        payload = msgspec.Raw(_encode_payload(payload))
    body = _body(schedule, payload)
    if paused_because is not None:
        body["paused_because"] = paused_because
    return _encode(body) if body else b"{}"


def stored_schedule(
    owner: str,
    key: str,
    when_text: str,
    tz: str,
    enabled: bool,
    version: int,
    created_at: int,
    updated_at: int,
    body: str | bytes,
    next_fire_at: int | None,
    aside: State | None,
    reason: str | None,
) -> StoredSchedule:
    """Return a schedule from the columns that a store keeps. An unreadable expression becomes an `Unreadable` when."""
    state = _state(enabled, next_fire_at, aside)
    try:
        read, policy, newer = _read_body(body)
    except InvalidSchedule as error:  # return it, so that it can be seen, put again or deleted
        read, policy, newer = _Body(), DEFAULT_POLICY, False
        state, reason = "unreadable", str(error)
    return StoredSchedule(
        owner=owner,
        key=key,
        when=_stored_when(when_text, tz),
        enabled=enabled,
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        state=state,
        next_fire_at=next_fire_at,
        reason=reason if read.paused_because is None else read.paused_because,
        newer=newer or policy is None,
        target=read.target,
        payload=_undecoded(read.payload),
        policy=policy or DEFAULT_POLICY,
        starts_at=read.starts_at,
        ends_at=read.ends_at,
        delete_after=read.delete_after,
    )


def active_schedule(row: IndexRow, stored: ReadBody) -> StoredSchedule:
    """Return the schedule of an index row from its body, which has already been read."""
    body = stored.body
    return StoredSchedule(
        owner=row.owner,
        key=row.key,
        when=row.when,
        tz=row.when.tz,
        version=stored.version,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        state="active",
        next_fire_at=row.next_fire_at,
        newer=stored.newer,
        target=body.target,
        payload=_undecoded(body.payload),
        policy=stored.policy,
        starts_at=body.starts_at,
        ends_at=body.ends_at,
        delete_after=body.delete_after,
    )


def read_body(version: int, created_at: int, updated_at: int, encoded: str | bytes) -> ReadBody:
    """Parse the body of a schedule that is to fire. `InvalidSchedule` if the body or its policy is unreadable."""
    body, policy, newer = _read_body(encoded)
    if policy is None:
        raise InvalidSchedule("policy", "cannot be read by this version: upgrade this worker, or put the schedule again")
    return ReadBody(version, created_at, updated_at, body, policy, newer)


def body_reads(body: str | bytes) -> bool:
    """Return whether this worker could fire a schedule with this body."""
    try:
        read_body(0, 0, 0, body)
    except InvalidSchedule:
        return False
    return True


class _Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A body as this version writes it."""

    target: HttpTarget | PythonTarget | SqsTarget | LambdaTarget | None = None
    payload: msgspec.Raw = msgspec.Raw(b"")
    policy: msgspec.Raw = msgspec.Raw(b"")
    starts_at: int | None = None
    ends_at: int | None = None
    delete_after: bool = None  # type: ignore[assignment]  # not given
    paused_because: str | None = None  # only while the schedule is paused; not declared by the user


class ReadBody(msgspec.Struct, frozen=True, gc=False):
    """A schedule without its index row, decoded. `newer`: it has fields that are unknown here."""

    version: int
    created_at: int
    updated_at: int
    body: _Body
    policy: Policy
    newer: bool


_decode_body = msgspec.json.Decoder(_Body).decode


def _read_body(encoded: str | bytes) -> tuple[_Body, Policy | None, bool]:
    """Return the known fields, the policy or None if it cannot be read, and whether there are unknown fields.

    `InvalidSchedule` if it is not a body at all.
    """
    try:
        body = _decode_body(encoded)
        return body, _read_policy(bytes(body.policy)) if body.policy else DEFAULT_POLICY, False
    except (msgspec.ValidationError, InvalidInput):
        return _read_newer_body(encoded)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidSchedule("body", f"cannot be read ({error}): put the schedule again") from None


def _undecoded(payload: msgspec.Raw) -> RawPayload | None:
    return RawPayload(payload) if len(payload) and (len(payload) != 4 or bytes(payload) != b"null") else None


@lru_cache(maxsize=1024)
def _read_policy(encoded: bytes) -> Policy:
    """Decode a policy. Schedules with the same policy share one value."""
    return policy_from_json(_decode(encoded))


def _read_newer_body(encoded: str | bytes) -> tuple[_Body, Policy | None, bool]:
    """Read field by field a body with target kinds of other packages, or of a newer version."""
    try:
        fields = _decode_fields(encoded)
        present = [name for name in _Body.__struct_fields__ if name in fields]
        known: dict[str, Any] = {name: fields[name] if name == "payload" else _decode(fields[name]) for name in present}
    except msgspec.ValidationError as error:
        raise InvalidSchedule("body", f"cannot be read ({error}): put the schedule again") from None
    newer = len(known) < len(fields)
    for name in _READERS.keys() & known.keys():
        try:
            known[name] = _READERS[name](known[name])
        except InvalidInput:
            del known[name]
            newer = True
    policy: Policy | None = DEFAULT_POLICY
    if "policy" in known:
        policy, more = _read_newer_policy(known.pop("policy"))
        newer = newer or more
    return _Body(**known), policy, newer


def _read_newer_policy(fields: object) -> tuple[Policy | None, bool]:
    """Return the policy, or None if a known field cannot be read; and whether there are unknown fields."""
    if not isinstance(fields, dict):
        return None, True
    known = {name: value for name, value in fields.items() if name in Policy.__struct_fields__}
    try:
        return policy_from_json(known), len(known) < len(fields)
    except InvalidInput:
        return None, True


_READERS: dict[str, Callable[[Any], object]] = {
    "target": read_target,
    "starts_at": partial(to_ms, name="starts_at"),
    "ends_at": partial(to_ms, name="ends_at"),
}


def _state(enabled: bool, next_fire_at: int | None, aside: State | None) -> State:
    if not enabled:
        return "paused"
    return "active" if next_fire_at is not None else aside or "unindexed"


def _stored_when(text: str, tz: str) -> When:
    try:
        return read_when(text, tz)
    except InvalidWhen as error:
        return Unreadable(text, tz, str(error))


def _body(schedule: Schedule, payload: object) -> dict[str, object]:
    body: dict[str, object] = {}
    if schedule.target is not None:
        body["target"] = schedule.target
    if payload is not None:
        body["payload"] = payload
    if schedule.policy is not DEFAULT_POLICY and schedule.policy != DEFAULT_POLICY:
        body["policy"] = policy_to_json(schedule.policy)
    if schedule.starts_at is not None:
        body["starts_at"] = schedule.starts_at
    if schedule.ends_at is not None:
        body["ends_at"] = schedule.ends_at
    if schedule.delete_after != (type(schedule.when) is At):
        body["delete_after"] = schedule.delete_after
    return body


def _depth(encoded: bytes) -> int:
    """Return how deeply JSON is nested, in linear time: a payload may have a hundred thousand parts."""
    brackets = _STRING.sub(b"", encoded).translate(_OPENS, _NO_BRACKETS)
    return max(accumulate(map((-1, 1).__getitem__, brackets)), default=0)


def encoded_payload(payload: object, max_bytes: int = MAX_PAYLOAD_BYTES) -> RawPayload | None:
    """Return a payload as stores keep it. `InvalidSchedule` if it is not plain JSON, or too large."""
    if payload is None or type(payload) is RawPayload:
        return payload
    return RawPayload(msgspec.Raw(_encode_payload(payload, max_bytes)))


def _encode_payload(payload: object, max_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
    """Encode and check a payload: first its length, then everything that takes longer."""
    try:
        encoded = _encode(payload)
    except RecursionError:
        raise InvalidSchedule("payload", "is not plain JSON: it is nested too deeply, or contains itself; flatten it") from None
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise InvalidSchedule("payload", f"is not plain JSON: {_PLAIN} ({error})") from None
    if len(encoded) > max_bytes:
        raise InvalidSchedule("payload", f"has {len(encoded)} bytes as JSON, more than {max_bytes}: store a reference")
    openings = encoded.count(b"[") + encoded.count(b"{")  # an upper bound of the depth, which suffices for most payloads
    if openings > MAX_LEVELS and _depth(encoded) > MAX_LEVELS:
        raise InvalidSchedule("payload", f"is nested deeper than {MAX_LEVELS} levels: flatten it, or store a reference")
    try:
        survives = _decode(encoded) == payload
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidSchedule("payload", f"is not plain JSON: {_PLAIN} ({error})") from None
    if not survives:
        raise InvalidSchedule("payload", f"is not plain JSON: {_PLAIN}")
    return encoded
