"""Reads instants from the command line and formats them for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tickler.cli.output import show_table
from tickler.clock import datetime_ms, to_datetime
from tickler.errors import InvalidWhen
from tickler.when import At, MarkedInstant, read_instant

DATE_AND_TIME = "%Y-%m-%d %H:%M:%S"


def parse_instant(text: str, tz: str, name: str) -> int:
    """Read ISO 8601: with an offset, or as wall time in `tz`."""
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
    """Format to the second, or `exactly` to the millisecond."""
    return "" if ms is None else _format(to_datetime(ms if exactly else ms // 1000 * 1000), DATE_AND_TIME)


def show_upcoming(upcoming: Sequence[MarkedInstant], tz: str) -> None:
    """Print instants in the schedule's zone, in UTC and in local time, omitting columns that repeat another."""
    columns = {tz: [_in_zone(each.at) for each in upcoming]}
    if any(each.at.utcoffset() for each in upcoming):
        columns["UTC"] = [_format(each.at.astimezone(UTC), DATE_AND_TIME) for each in upcoming]
    local = [each.at.astimezone() for each in upcoming]
    if any(at.utcoffset() not in (each.at.utcoffset(), timedelta(0)) for at, each in zip(local, upcoming, strict=True)):
        columns["local"] = [_in_zone(at) for at in local]
    if any(each.marks for each in upcoming):
        columns["mark"] = ["; ".join(each.marks) for each in upcoming]
    show_table(list(columns), list(zip(*columns.values(), strict=True)), unwrapped=set(columns) - {"mark"})


def _in_zone(at: datetime) -> str:
    offset = f"{at:%z}"
    return f"{_format(at, f'%a {DATE_AND_TIME}')} {offset[:3]}:{offset[3:]}"


def _format(at: datetime, form: str) -> str:
    milliseconds = f".{at.microsecond // 1000:03}" if at.microsecond else ""
    return f"{at:{form}}{milliseconds}"
