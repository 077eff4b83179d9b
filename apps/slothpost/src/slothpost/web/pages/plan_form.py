"""The form of a weekly plan: a field for each day, with its times. A day with a time is on; there is no other switch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

from slothpost.errors import InvalidField
from slothpost.model import Channel
from slothpost.people.users import checked_zone
from slothpost.web.pages.environment import DAYS, sentence_case
from slothpost.web.pages.form_errors import FORM, FieldErrors
from tickler import Weekly
from tickler.errors import InvalidWhen
from tickler.web import FormFields

ZONE = "zone"

_SEPARATORS = re.compile(r"[\s,;]+")
_MAX_SHOWN = 40


class PlanForm(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the form, and what is wrong with it, by field."""

    typed: Mapping[str, str]
    zone: str
    errors: FieldErrors = {}


def shown_plan(channel: Channel) -> PlanForm:
    return PlanForm(typed={day: ", ".join(channel.days.get(day, [])) for day in DAYS}, zone=channel.zone)


def read_plan(fields: FormFields) -> tuple[dict[str, object], PlanForm]:
    """Return the days as the API takes them, and the form. If it has errors, the days are of no use."""
    days: dict[str, object] = {}
    errors: FieldErrors = {}
    for name, text in fields.items():
        day, _, attribute = name.partition(".")
        if name == ZONE:
            continue
        if day not in DAYS:
            errors[FORM] = f"{name[:_MAX_SHOWN]!r} is an unknown field: a plan has a field for each day, from mon to sun."
        elif attribute:
            errors.update(_errors(day, {attribute: text}))
        else:
            days[day] = _times(text)
            errors.update(_errors(day, days[day]))
    zone = fields.get(ZONE, "").strip()
    errors.update(_zone_errors(zone))
    return days, PlanForm(typed={day: fields.get(day, "") for day in DAYS}, zone=zone, errors=errors)


def _times(text: str) -> object:
    """Read what was typed for a day: times, or what the API takes, such as {"time": "09:00"}."""
    stripped = text.strip()
    if stripped.startswith(("{", "[", '"')):
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):
            return stripped
    return [time for time in _SEPARATORS.split(stripped) if time] or None


def _errors(day: str, value: object) -> FieldErrors:
    try:
        Weekly({day: value})
    except InvalidWhen as error:
        return {day: sentence_case(error.reason.replace("or None for a day off", "or leave it empty for a day off"))}
    return {}


def _zone_errors(zone: str) -> FieldErrors:
    try:
        checked_zone(zone)
    except InvalidField as error:
        return {ZONE: sentence_case(error.reason)}
    return {}
