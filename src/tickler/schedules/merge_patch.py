"""Changes part of a schedule: a JSON merge patch (RFC 7396) on the schedule's JSON.

Two fields are special. `when` is replaced as a whole, since null in a weekly plan means "not on that day". Headers and secret of
a target are stored encrypted: those that a patch does not name are kept only for the same scheme, host and port. A patch that
moves the target has to name them again, so that no caller can have stored secrets sent to another host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tickler.errors import InvalidSchedule
from tickler.model.payload import RawPayload
from tickler.model.policy import Policy
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.model.schedule_json import schedule_from_json, undecoded_json
from tickler.model.target import REDACTED, HttpTarget, Target
from tickler.webhooks.encryption import Encryption, origin_of
from tickler.when.zone_prefix import prefixed

_SEALED_FIELDS = ("headers", "secret")


def merge_patch(value: object, patch: object) -> object:
    """Apply a patch (RFC 7396): objects are merged, null removes a name, any other value replaces the old one."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), change)
    return merged


def patched(current: StoredSchedule, patch: Mapping[str, Any], payload: RawPayload | None, encryption: Encryption) -> Schedule:
    """What is declared once `patch` is applied to what is stored, with the `payload` that follows from both.

    `InvalidSchedule` or `InvalidWhen` name the field at fault.
    """
    for name in ("owner", "key"):
        if patch.get(name, getattr(current, name)) != getattr(current, name):
            raise InvalidSchedule(name, f"cannot be changed: put a schedule with that {name}, and delete this one")
    _refuse_unknown("", patch, Schedule)
    _refuse_unknown("policy.", patch.get("policy"), Policy)
    try:
        return schedule_from_json({**_merged(current, patch, encryption), "payload": payload})
    except RecursionError:
        raise InvalidSchedule("schedule", "is nested too deep: flatten it") from None


def _refuse_unknown(place: str, patch: object, kind: type[msgspec.Struct]) -> None:
    """Refuse unknown names, also those that the patch removes: a misspelt one would go unnoticed."""
    for name in patch if isinstance(patch, Mapping) else ():
        if name not in kind.__struct_fields__:
            raise InvalidSchedule(f"{place}{str(name)[:40]}", f"unknown field: use {', '.join(kind.__struct_fields__)}")


def _merged(current: StoredSchedule, patch: Mapping[str, Any], encryption: Encryption) -> dict[str, Any]:
    changes = dict(patch)
    if isinstance(changes.get("target"), str):
        changes["target"] = {"type": "http", "url": changes["target"]}
    merged = merge_patch(undecoded_json(current), {**changes, "when": None, "target": None, "payload": None})
    assert isinstance(merged, dict)
    when = merged["when"] = changes.get("when", str(current.when))
    if "tz" not in changes and isinstance(when, str) and prefixed(when) is not None:
        del merged["tz"]  # the expression names its own
    merged["target"] = (
        _patched_target(current.target, changes["target"], current.owner, encryption) if "target" in changes else current.target
    )
    return merged


def _patched_target(before: Target | None, patch: object, owner: str, encryption: Encryption) -> object:
    """As JSON. A target of another type takes the place of the stored one."""
    stored = None if before is None else msgspec.to_builtins(before)
    if not isinstance(patch, Mapping) or stored is None or patch.get("type", stored["type"]) != stored["type"]:
        return merge_patch(None, patch)
    if not isinstance(before, HttpTarget):
        return merge_patch(stored, patch)
    return _patched_http(before, stored, _normalised(before, patch), owner, encryption)


def _patched_http(
    before: HttpTarget, stored: dict[str, Any], patch: dict[str, Any], owner: str, encryption: Encryption
) -> object:
    bare = {name: value for name, value in stored.items() if name not in (*_SEALED_FIELDS, "sealed")}
    if before.sealed is not None and _moves(before, patch.get("url")):
        _check_named_again(before, patch)
        return merge_patch(bare, patch)
    if before.sealed is None or not any(name in patch for name in _SEALED_FIELDS):
        return merge_patch(stored, patch)
    if not any(getattr(before, name) and (name not in patch or patch[name] is not None) for name in _SEALED_FIELDS):
        return merge_patch(bare, patch)  # nothing that is sealed is kept, so no key is needed
    return merge_patch(msgspec.to_builtins(encryption.decrypt_target(before, owner)), patch)


def _normalised(before: HttpTarget, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch without values that were only read back (`sealed`, redacted ones), and with lower-case header names."""
    read_back = {"sealed": before.sealed, "secret": REDACTED if before.secret else None}
    plain = {name: value for name, value in patch.items() if value is None or value != read_back.get(name)}
    if not isinstance(headers := plain.get("headers"), Mapping):
        return plain
    stored, named = before.headers or {}, {}
    for name, value in headers.items():
        lower = name.lower() if isinstance(name, str) else name
        if value != REDACTED or lower not in stored:
            named[name if lower in named else lower] = value  # a duplicate name is refused later
    if headers and not named:
        return {name: value for name, value in plain.items() if name != "headers"}
    return {**plain, "headers": named}


def _moves(before: HttpTarget, url: object) -> bool:
    """Tell whether the target moves to another scheme, host or port. `InvalidSchedule` if the URL is invalid."""
    return url is not None and origin_of(HttpTarget(url).url) != origin_of(before.url)  # type: ignore[arg-type]  # it is checked there


def _check_named_again(before: HttpTarget, patch: Mapping[str, Any]) -> None:
    unsaid = [f"target.{name}" for name in _SEALED_FIELDS if getattr(before, name) and name not in patch]
    if isinstance(named := patch.get("headers"), Mapping):
        unsaid += [f"target.headers.{name}" for name in before.headers or () if name not in named]
    if unsaid:
        names = " and ".join(unsaid)
        raise InvalidSchedule(
            "target.url",
            f"has another scheme, host or port, and {names} were stored only for {origin_of(before.url)}: send them again "
            "with the new URL, or null to remove them",
        )
