"""Which field of a form an error belongs to, and the reason that is shown next to it."""

from __future__ import annotations

import re
from collections.abc import Collection

from pricebook.errors import InvalidField, NotAllowed, PricebookError
from pricebook.pages.environment import sentence_case
from tickler.errors import InvalidInput

FORM = "form"  # where errors of no field are shown
FORM_ERRORS = (InvalidField, NotAllowed, InvalidInput)  # that a form shows; roles are checked before

FieldErrors = dict[str, str]

_NAMED = re.compile(r"([a-z_]+): (.+)", re.DOTALL)


def errors_of(error: PricebookError | InvalidInput, fields: Collection[str]) -> FieldErrors:
    """Return the error by the field that shows it; an error of another field by the form."""
    if isinstance(error, InvalidField):
        return {error.field if error.field in fields else FORM: sentence_case(error.reason)}
    named = _NAMED.fullmatch(str(error))
    if named is not None and named[1] in fields:
        return {named[1]: sentence_case(named[2])}
    return {FORM: sentence_case(str(error))}
