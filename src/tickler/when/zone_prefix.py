"""The prefix `CRON_TZ=` or `TZ=` of a cron expression, which names its zone."""

from __future__ import annotations

import re
from typing import NamedTuple

from tickler.errors import InvalidWhen

_PREFIXED = re.compile(r"\s*((?:CRON_)?TZ=)(\S*)\s*(.*)", re.DOTALL)
_INTERVAL = re.compile(r"@every\b|rate\s*\(", re.IGNORECASE)
_OTHER_KIND = re.compile(r"(at|weekly)\s*\(", re.IGNORECASE)


class ZonePrefix(NamedTuple):
    """A prefix, its zone, and the expression that follows."""

    prefix: str
    zone: str
    expression: str


def prefixed(text: str) -> ZonePrefix | None:
    """Split text with a prefix. None if it has no prefix."""
    found = _PREFIXED.fullmatch(text)
    return None if found is None else ZonePrefix(*found.groups())


def zoned(text: str, tz: str | None) -> tuple[str, str]:
    """Return a cron expression without its prefix, and its zone: the prefix's, or `tz`, or UTC."""
    found = prefixed(text) if isinstance(text, str) else None
    if found is None:
        return text, "UTC" if tz is None else tz
    prefix, zone, bare = found
    if _INTERVAL.match(bare):
        raise InvalidWhen("tz", text, f"an interval has no zone: leave out {prefix + zone!r}", inside=True)
    if not zone:
        raise InvalidWhen(
            "tz",
            text,
            f"{prefix!r} names no zone: write '{prefix}Europe/Paris 0 9 * * *', or leave out {prefix!r} and set tz",
            inside=True,
        )
    if (kind := _OTHER_KIND.match(bare)) is not None:
        remedy = f"leave out {prefix + zone!r}, and set tz to {zone!r}"
        raise InvalidWhen("tz", text, f"{prefix!r} is for cron expressions, not for {kind[1].lower()}(…): {remedy}", inside=True)
    if tz not in (None, zone):
        raise InvalidWhen("tz", text, f"{prefix!r} names the zone {zone!r}, and tz is {tz!r}: leave out one of them", inside=True)
    return bare, zone
