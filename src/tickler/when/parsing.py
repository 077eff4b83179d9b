"""Reads a When from text and JSON. `parse_when(str(w), tz=w.tz) == w`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tickler.errors import InvalidWhen, UnknownTimezone
from tickler.when.at import At
from tickler.when.cron import Cron
from tickler.when.every import parse_every, parse_rate
from tickler.when.weekly import Weekly, parse_weekly
from tickler.when.when import When
from tickler.when.zone_prefix import prefixed
from tickler.when.zones import load_zone

MAX_TEXT_LENGTH = 4_096

_CALL = re.compile(r"(cron|at|rate|weekly)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def parse_when(text: str, tz: str | None = None, *, suggest: bool = True) -> When:
    """Read a time expression as people write and paste it.

    `0 9 * * tue` and `@daily`, `cron(0 9 * * 1-5)`, `at(2026-03-15T00:00:00)`, `rate(5 minutes)`, `@every 1h30m`,
    `weekly(tue 09:00, thu 09:00)`, EventBridge's `cron(0 9 ? * MON-FRI *)`. Wall times are read in the zone `tz`, by default UTC;
    `CRON_TZ=Asia/Tokyo 0 9 * * *` has its own zone. Intervals have no zone.

    Without `suggest`, the error for an unknown zone suggests no similar one, which saves milliseconds.
    """
    if not isinstance(text, str):
        raise InvalidWhen("when", str(text), f"is a {type(text).__name__}: write text such as '0 9 * * tue'")
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidWhen("when", text[:40] + "…", f"is longer than {MAX_TEXT_LENGTH} characters")
    if tz is not None and not isinstance(tz, str):
        raise UnknownTimezone(str(tz)[:40], f"a zone is a name such as 'Europe/Paris', not a {type(tz).__name__}")
    if not suggest:
        named = prefixed(text)
        _check_zones(tz, None if named is None else named.zone)
    return read_when(text, tz)


def read_when(text: str, tz: str | None) -> When:
    """Read without the checks of `parse_when`. Equal text and zone give the same object, except for one-shots."""
    return At(text[3:-1], tz=tz) if text.startswith("at(") and text.endswith(")") else _read_shared(text, tz)


@lru_cache(maxsize=65_536)
def _read_shared(text: str, tz: str | None) -> When:
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call is None:
        return parse_every(text, tz) if text.lower().startswith("@every") else Cron(text, tz=tz)
    kind, body = call[1].lower(), call[2]
    if kind == "cron":
        return Cron(text, tz=tz)
    if kind == "at":
        return At(body, tz=tz)
    return parse_rate(body, tz) if kind == "rate" else parse_weekly(body, tz)


def when_from_json(value: object, tz: str | None = None, *, suggest: bool = True) -> When:
    """Read `when` from JSON: text, or `{"weekly": {"tue": {"time": "09:00"}, "mon": {"time": null}}}`.

    `suggest` is as in `parse_when`.
    """
    if isinstance(value, str):
        return parse_when(value, tz, suggest=suggest)
    if isinstance(value, Mapping) and list(value) == ["weekly"]:
        if not suggest:
            _check_zones(tz)
        return Weekly(value["weekly"], tz="UTC" if tz is None else tz)
    raise InvalidWhen(
        "when", str(value)[:200], 'cannot be read: give text such as "0 9 * * tue", or {"weekly": {"tue": {"time": "09:00"}}}'
    )


def _check_zones(*names: str | None) -> None:
    """Raise `UnknownTimezone` without a suggestion. Empty names are left to the reader of the expression."""
    for name in filter(None, names):
        load_zone(name, suggest=False)
