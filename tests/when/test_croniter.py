"""Random cron expressions, whole and broken, read by croniter too: both read one or neither does, and they name the same times.

Where the two differ on purpose, `READ_OTHERWISE` and `NAMED_OTHERWISE` say so, with an example each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from croniter.croniter import CroniterError

from tickler.errors import InvalidWhen
from tickler.when import Cron

DAY = 86_400
WHOLE, BROKEN = 2_000, 6_000
CALM_ZONES = ("UTC", "Asia/Tokyo", "Asia/Kathmandu", "America/Bogota")  # since 1993 at the latest
ZONES = (*CALM_ZONES, "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NUMBERS = {name: number for names, first in ((WEEKDAYS, 0), (MONTHS, 1)) for number, name in enumerate(names, first)}
LASTS = ("59", "59", "23", "31", "12|dec", "7")  # of each field
SLIPS = "0123456789*/-,#L"


class Fields(NamedTuple):
    text: str
    seconds: bool
    parts: list[str]  # all six
    day: str
    weekday: str


def fields_of(expr: str) -> Fields:
    parts = expr.split()
    seconds = len(parts) == 6
    return Fields(expr, seconds, parts if seconds else ["0", *parts], parts[-3], parts[-1])


def has_range(test: Callable[[int, int], bool]) -> Callable[[Fields], bool]:
    """Whether the ends of one of its ranges are like that."""

    def concerns(fields: Fields) -> bool:
        ends = re.findall(r"(?:^|(?<=[ ,]))(\w+)-(\w+)", fields.text)
        return any(test(*(NUMBERS.get(end, int(end) if end.isdigit() else -1) for end in pair)) for pair in ends)

    return concerns


class Difference(NamedTuple):
    name: str
    concerns: Callable[[Fields], bool]
    example: str


READ_OTHERWISE = (  # one refuses what the other reads
    Difference("a range does not wrap around, and does for croniter", has_range(lambda low, high: low > high), "0 22-2 * * *"),
    Difference("the last Friday is 5L, and to croniter L5", lambda fields: "L" in fields.weekday, "0 0 * * 5L"),
    Difference("7 is Sunday beside seconds too", lambda fields: fields.seconds and "7" in fields.weekday, "0 0 0 * * 7"),
    Difference(
        "there is no day 0 and no month 0, and for croniter there is beside seconds",
        lambda fields: fields.seconds and any(re.search(r"(^|,)0+([/,-]|$)", part) for part in fields.parts[3:5]),
        "0 0 0 0-6 * *",
    ),
    Difference(
        "fri,mon#2 are both meant, and refused by croniter",
        lambda fields: "#" in fields.weekday and "," in fields.weekday,
        "0 0 * * fri,mon#2",
    ),
)
NAMED_OTHERWISE = (  # both read it, and name other instants
    Difference("a range of one is that one, and to croniter all", has_range(lambda low, high: low == high), "0 9-9 * * *"),
    Difference(
        "a step from the last number of a field names that one, and to croniter all of them",
        lambda fields: any(re.search(rf"(^|,)({last})/", part) for last, part in zip(LASTS, fields.parts, strict=True)),
        "59/5 9 * * *",
    ),
    Difference(
        "a step from a weekday goes on to 7, Sunday, and to croniter to 6",
        lambda fields: bool(re.search(r"(^|,)\w+/", fields.weekday)),
        "0 0 * * mon/6",
    ),
    Difference(
        "a list is every day if it has a star, but it is the first character that asks for both days",
        lambda fields: any("*" in day and "," in day for day in (fields.day, fields.weekday)),
        "0 0 8,* 10 mon",
    ),
    Difference(
        "a day or an nth weekday is enough, and to croniter both have to match",
        lambda fields: "#" in fields.weekday and not fields.day.startswith("*"),
        "0 0 17 * mon#2",
    ),
    Difference(
        "a day that no month has leaves the weekdays, and to croniter nothing",
        lambda fields: fields.day.strip("*") != "" and fields.weekday.strip("*") != "",
        "0 0 31 2 mon",
    ),
)
DIFFERENCES = (*READ_OTHERWISE, *NAMED_OTHERWISE)


def ours(expr: str, start: int, zone: str = "UTC") -> list[int] | None:
    """The next three instants in seconds; None where the expression is refused."""
    try:
        cron = Cron(expr, tz=zone)
    except InvalidWhen:
        return None
    found, at = [], start * 1000
    for _ in range(3):
        following = cron.next_after(at)
        assert following is not None
        found.append(following // 1000)
        at = following
    return found


def theirs(expr: str, start: int, zone: str = "UTC") -> list[int] | None:
    """The same of croniter; also None where it looks for a date until it gives up, as with 30 February."""
    try:
        peer = croniter(expr, datetime.fromtimestamp(start, ZoneInfo(zone)), second_at_beginning=True, implement_cron_bug=True)
        return [int(peer.get_next(datetime).timestamp()) for _ in range(3)]
    except CroniterError:
        return None


def is_calm(zone: str, start: int, end: int) -> bool:
    """Whether the clock does not change between the two, nor within a day of them."""
    offsets = [datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset() for at in (start - DAY, end + DAY)]
    return zone in CALM_ZONES or (offsets[0] == offsets[1] and end - start < 60 * DAY)


class Writer:
    """Writes expressions."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def whole(self) -> str:
        random = self._random
        weekday = f"{random.choice(('mon', '5', 'SUN'))}#{random.randint(1, 4)}" if random.random() < 0.1 else None
        fields = [
            self._field(0, 59),
            self._field(0, 23),
            "*" if random.random() < 0.5 else "L" if random.random() < 0.1 else self._field(1, 31),
            "*" if random.random() < 0.5 else self._field(1, 12, MONTHS),
            weekday or ("*" if random.random() < 0.5 else self._field(0, 7, WEEKDAYS)),
        ]
        return " ".join([self._field(0, 59), *fields] if random.random() < 0.3 else fields)

    def broken(self) -> str:
        """One or two slips in a whole one: as many fields, and often still an expression."""
        random, expr = self._random, self.whole()
        for _ in range(random.randint(1, 2)):
            at = random.choice([at for at in range(len(expr) + 1) if expr[at : at + 1] != " "])
            cut = random.randint(0, 1) if expr[at + 1 : at + 2] not in ("", " ") else 0
            expr = expr[:at] + "".join(random.choices(SLIPS, k=random.randint(0 if cut else 1, 2))) + expr[at + cut :]
        return expr

    def _field(self, low: int, high: int, names: Sequence[str] = ()) -> str:
        return ",".join(self._item(low, high, names) for _ in range(self._random.choice((1, 1, 1, 2, 3))))

    def _item(self, low: int, high: int, names: Sequence[str]) -> str:
        random = self._random
        first = random.randint(low, high)
        last, step = random.randint(first, high), random.randint(1, high)
        spelled = [
            names[number - low] if number - low < len(names) and random.random() < 0.3 else str(number)
            for number in (first, last)
        ]
        start, span = spelled[0], "-".join(spelled)
        return random.choice(("*", f"*/{step}", start, start, start, span, span, f"{span}/{step}", f"{start}/{step}"))


def is_explained(expr: str, by: Sequence[Difference]) -> bool:
    return any(difference.concerns(fields_of(expr)) for difference in by)


def test_both_read_an_expression_or_neither_does_and_they_name_the_same_instants(seed: int, soak: bool) -> None:
    random = Random(seed)
    writer, times = Writer(random), 20 if soak else 1
    compared, wrong = 0, list[str]()
    for _ in range(WHOLE * times):
        expr, zone, start = writer.whole(), random.choice(ZONES), random.randint(946_684_800, 2_000_000_000)
        if is_explained(expr, DIFFERENCES):
            continue
        here = ours(expr, start, zone)
        if here is not None and not is_calm(zone, start, here[-1]):
            continue
        compared += here is not None
        there = theirs(expr, start, zone)
        if here != there:
            wrong.append(f"{expr!r} in {zone} after {start}: {here}, and croniter {there}")
    assert not wrong, f"{len(wrong)} of {compared} differ:\n" + "\n".join(wrong[:20])
    assert compared > WHOLE * times // 4


def is_read(expr: str) -> bool:
    """Also where it is refused because no year has such a date: croniter looks for dates later."""
    try:
        Cron(expr)
    except InvalidWhen as error:
        return error.reason.startswith(("none of the months has a day", "there is no such date"))
    return True


def test_what_croniter_refuses_is_refused(seed: int, soak: bool) -> None:
    random = Random(seed)
    writer, times = Writer(random), 20 if soak else 1
    refused, wrong = 0, list[str]()
    for _ in range(BROKEN * times):
        expr = writer.broken()
        if is_explained(expr, READ_OTHERWISE):
            continue
        here, there = is_read(expr), croniter.is_valid(expr, second_at_beginning=True)
        refused += not here
        if here != there:
            wrong.append(f"{expr!r} is {'read' if here else 'refused'}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])
    assert refused > BROKEN * times // 4


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_croniter_reads_this_otherwise(difference: Difference) -> None:
    assert difference.concerns(fields_of(difference.example))
    assert ours(difference.example, 1_700_000_000) != theirs(difference.example, 1_700_000_000)
