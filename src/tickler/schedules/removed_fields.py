"""Fields that a put removed from the schedule it replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tickler.model.schedule import Schedule
from tickler.model.schedule_json import undecoded_json
from tickler.when import Every

_UNSHOWN = frozenset({"sealed"})  # belongs to the headers and the secret, which are named


def removed_fields(before: Schedule, after: Schedule) -> list[str]:
    """Return fields that had a value and now have their default, such as "target", "policy.attempts" or "tz".

    "paused" stands for `enabled`, which was false: the schedule fires again.
    """
    old, new = undecoded_json(before), undecoded_json(after)
    if after.tz == "UTC" != before.tz and not isinstance(after.when, Every):  # an interval needs no zone
        del new["tz"]
    if "target" in new and _type_of(old.get("target")) != _type_of(new["target"]):
        old.pop("target", None)  # another kind of target is a change, not a removal
    return [*_removed(old, new), *(["paused"] if after.enabled and not before.enabled else [])]


def _removed(old: Mapping[str, object], new: Mapping[str, object], place: str = "") -> Iterator[str]:
    for name, value in old.items():
        if name not in new and name not in _UNSHOWN:
            yield place + name
        elif isinstance(value, Mapping) and isinstance(inner := new.get(name), Mapping) and (place or name != "payload"):
            yield from _removed(value, inner, f"{place}{name}.")


def _type_of(target: object) -> object:
    return target.get("type") if isinstance(target, Mapping) else None
