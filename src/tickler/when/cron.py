"""Cron expressions in cronsim's dialect: five fields, or six with seconds; names, L, LW, #, and macros such as @daily.

cronsim reads the expression. We compute the instants on bit masks, since its own iteration has errors inside folds, on skipped
days and in half-hour gaps (docs/decisions/0002). `cron(…)` with a `?` is EventBridge's dialect (docs/decisions/0022).
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from tickler.errors import InvalidWhen
from tickler.when.calendar import Calendar
from tickler.when.cron_fields import CronFields, FieldValues
from tickler.when.eventbridge import compile_eventbridge
from tickler.when.hints import cron_hint, interval_hint
from tickler.when.zone_prefix import zoned

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MAX_EXPRESSION_LENGTH = 256

_WRAPPED = re.compile(r"cron\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_STEPPED_RANGE = re.compile(r"(?<![^ ,])(\w+)-(\w+)/\d+(?![^ ,])")
_STEPPED_LAST = re.compile(r"\bLW?/\w*")
_NAMES = re.compile(r"\b(SUN|MON|TUE|WED|THU|FRI|SAT|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)")
_VALUES = {
    name: str(number)
    for names, first in (("SUN MON TUE WED THU FRI SAT", 0), ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1))
    for number, name in enumerate(names.split(), first)
}
_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_RANGES = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L or LW",
    "month": "1 to 12, or jan to dec",
    "day-of-week": "0 to 7, or sun to sat",
}


class Cron(Calendar):
    """The instants at which a zone's wall clock matches a cron expression.

    Expressions whose minute or hour begins with `*` fire whenever the wall clock matches, also twice in a fold. All others
    fire once for each wall time: the first time that the clock reaches it, or right after the gap that contains it.
    """

    __slots__ = ()

    def __init__(self, expr: str, tz: str | None = None) -> None:
        bare, zone = zoned(expr, tz)
        text = canonical(bare)
        try:
            fields = compile_cron(text)
        except InvalidWhen as error:
            reason = error.reason
            for ours, theirs in zip(_inside(text).split(), _inside(bare).split(), strict=False):  # quote the caller's spelling
                reason = reason.replace(repr(ours), repr(theirs))
            raise InvalidWhen(error.field, expr, reason, inside=error.inside) from None
        self._keep(text, zone, fields, running=fields.running)

    def shortest_interval_ms(self) -> int | None:
        return compile_cron(self._text).shortest_interval() * 1000

    def __repr__(self) -> str:
        return f"Cron({self._text!r}, tz={self.tz!r})"

    def __reduce__(self) -> tuple[type[Cron], tuple[str, str]]:
        return Cron, (self._text, self.tz)


def canonical(expr: str) -> str:
    """Return the canonical spelling, so that equal expressions share one compiled form.

    Macros are expanded, spaces are single, names are lower-case, L and LW upper-case. EventBridge's expressions keep their
    brackets and are upper-case, as AWS writes them.
    """
    if not isinstance(expr, str):
        raise InvalidWhen("expression", str(expr), f"is a {type(expr).__name__}: write a cron expression as text")
    if len(expr) > MAX_EXPRESSION_LENGTH:
        raise InvalidWhen("expression", expr[:40] + "…", f"is longer than {MAX_EXPRESSION_LENGTH} characters")
    parts = _inside(expr).split()  # also at non-breaking spaces, which pasted text has
    spaced = " ".join(parts)
    if not spaced.isascii():  # cronsim would take some other letters for ASCII ones, since it changes their case first
        place = next(place for place, part in enumerate(parts) if not part.isascii()) + 6 - len(parts)
        field = _FIELDS[place] if len(parts) in (5, 6) else "expression"
        raise _invalid_field(field, expr, parts[place - 6 + len(parts)])
    if spaced.startswith("@"):
        if spaced.lower() not in MACROS:
            known = ", ".join(MACROS)
            raise InvalidWhen("expression", expr, f"is not a known shorthand: use one of {known}; {interval_hint(expr)}")
        return MACROS[spaced.lower()]
    if "?" in spaced and _WRAPPED.fullmatch(expr.strip()):
        return f"cron({spaced.upper()})"
    return _NAMES.sub(lambda name: name[0].lower(), spaced.upper())


@lru_cache(maxsize=16_384)
def compile_cron(expr: str) -> CronFields:
    """Compile a canonical expression. All users of an expression share the result."""
    fields = compile_eventbridge(_inside(expr)) if expr.startswith("cron(") else _compile_ours(expr)
    if not fields.has_a_date():
        raise InvalidWhen("day-of-month", expr, "there is no such date in any year that it names", inside=True)
    return fields


def _compile_ours(expr: str) -> CronFields:
    sim = _parse(expr)
    single = _STEPPED_RANGE.sub(_first_of_one, expr)
    if single != expr:
        sim = _parse(single)
    values = FieldValues(
        seconds=frozenset(sim.seconds),
        minutes=frozenset(sim.minutes),
        hours=frozenset(sim.hours),
        days=frozenset(sim.days),
        months=frozenset(sim.months),
        weekdays=frozenset(day % 7 if isinstance(day, int) else (day[0] % 7, day[1]) for day in sim.weekdays),
        both=sim.day_and,
    )
    return CronFields(values, running=sim.parts[1].startswith("*") or sim.parts[2].startswith("*"))


def _inside(expr: str) -> str:
    wrapped = _WRAPPED.fullmatch(expr.strip())
    return expr if wrapped is None else wrapped[1]


def _first_of_one(stepped: re.Match[str]) -> str:
    """Replace a range of one number with a step by the number: cronsim takes it for the first of many."""
    first, last = (_VALUES.get(end.upper(), end).lstrip("0") for end in stepped.groups())
    return stepped[1] if first == last else stepped[0]


def _parse(expr: str) -> CronSim:
    stepped = _STEPPED_LAST.search(expr)
    if stepped is not None:
        raise InvalidWhen("day-of-month", expr, f"{stepped[0]!r} cannot have a step: write L or LW alone", inside=True)
    try:
        return CronSim(expr, datetime(2000, 1, 1))
    except CronSimError as error:
        hint = cron_hint(expr)
        if hint is not None:
            raise InvalidWhen("expression", expr, hint) from None
        field = str(error).removeprefix("Bad ")
        if field not in _FIELDS:
            remedy = f"write five fields, minute hour day month weekday, or six with seconds first; {interval_hint(expr)}"
            raise InvalidWhen("expression", expr, f"is not a cron expression: {remedy}") from None
        raise _invalid_part(field, expr) from None
    except (AssertionError, ValueError) as error:
        raise InvalidWhen("expression", expr, f"is not a cron expression: {error}") from None


def _invalid_part(field: str, expr: str) -> InvalidWhen:
    parts = expr.split()
    text = parts[_FIELDS.index(field) - (6 - len(parts))]
    if field == "day-of-month" and _reads_as_cron(" ".join([*parts[:-2], "*", parts[-1]])):
        return InvalidWhen(field, expr, f"none of the months has a day {text}", inside=True)
    return _invalid_field(field, expr, text)


def _reads_as_cron(expr: str) -> bool:
    try:
        CronSim(expr, datetime(2000, 1, 1))
    except CronSimError:
        return False
    return True


def _invalid_field(field: str, expr: str, text: str) -> InvalidWhen:
    upwards = ", and ranges upwards" if "-" in text else ""
    return InvalidWhen(
        field, expr, f"{field} {text!r} is invalid: write {_RANGES.get(field, 'five fields')}{upwards}", inside=True
    )
