"""Instants, as people type them and as they are shown them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tickler.cli.output import show_table
from tickler.clock import datetime_ms, to_datetime
from tickler.errors import InvalidWhen
from tickler.when import At, MarkedInstant, read_instant

DATE_AND_TIME = "%Y-%m-%d %H:%M:%S"


def read_moment(text: str, tz: str, name: str) -> int:
    """ISO 8601: with an offset, or else on the wall clock of that zone."""
    try:
        return datetime_ms(read_instant(text, name), name)
    except InvalidWhen:
        pass
    try:
        at_ms = At(text, tz=tz).at_ms
    except InvalidWhen as error:
        raise error if error.field == "tz" else InvalidWhen(name, text, error.reason) from None
    if at_ms is None:
        raise InvalidWhen(name, text, f"is on a date that {tz} skipped")
    return at_ms


def utc(ms: int | None, *, exactly: bool = False) -> str:
    """To the second, or as exactly as it is known."""
    return "" if ms is None else _shown(to_datetime(ms if exactly else ms // 1000 * 1000), DATE_AND_TIME)


def show_upcoming(found: Sequence[MarkedInstant], tz: str) -> None:
    """In the zone of the schedule, in UTC, and where this machine is, as far as those differ."""
    columns = {tz: [_in_zone(each.at) for each in found]}
    if any(each.at.utcoffset() for each in found):
        columns["UTC"] = [_shown(each.at.astimezone(UTC), DATE_AND_TIME) for each in found]
    here = [each.at.astimezone() for each in found]
    if any(there.utcoffset() not in (each.at.utcoffset(), timedelta(0)) for there, each in zip(here, found, strict=True)):
        columns["here"] = [_in_zone(there) for there in here]
    if any(each.marks for each in found):
        columns["mark"] = ["; ".join(each.marks) for each in found]
    show_table(list(columns), list(zip(*columns.values(), strict=True)), whole=set(columns) - {"mark"})


def upcoming_json(found: Sequence[MarkedInstant]) -> list[dict[str, object]]:
    return [each.to_json() for each in found]


def _in_zone(moment: datetime) -> str:
    offset = f"{moment:%z}"
    return f"{_shown(moment, f'%a {DATE_AND_TIME}')} {offset[:3]}:{offset[3:]}"


def _shown(moment: datetime, form: str) -> str:
    thousandths = f".{moment.microsecond // 1000:03}" if moment.microsecond else ""
    return f"{moment:{form}}{thousandths}"
