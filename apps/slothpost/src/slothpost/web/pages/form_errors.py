"""Which field of a form an error belongs to, and the reason that is shown next to it."""

from __future__ import annotations

import re
from collections.abc import Collection

from slothpost.errors import InvalidField
from slothpost.web.pages.environment import sentence_case
from tickler.errors import InvalidInput, InvalidWhen

FORM = "form"  # where errors of no field are shown

FieldErrors = dict[str, str]
FormError = InvalidField | InvalidInput

_NAMED = re.compile(r"([a-z_.]+): (.+)", re.DOTALL)
_RENAMED = {"tz": "zone"}


def errors_of(error: FormError, fields: Collection[str]) -> FieldErrors:
    """Return the error by the field that shows it; an error of another field by the form."""
    name, reason = _named(error)
    name = _RENAMED.get(name, name)
    if name in fields or isinstance(error, InvalidField):
        return {name if name in fields else FORM: sentence_case(reason)}
    return {FORM: sentence_case(str(error))}


def _named(error: FormError) -> tuple[str, str]:
    match error:
        case InvalidField():
            return error.field, error.reason
        case InvalidWhen():
            return error.field.partition(".")[0], str(error) if error.field == "tz" else error.reason
    named = _NAMED.fullmatch(str(error))
    return (named[1], named[2]) if named else ("", str(error))
