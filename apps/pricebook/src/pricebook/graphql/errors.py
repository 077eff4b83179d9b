"""Errors as clients get them: a message for people, and a code for programs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from graphql import GraphQLError
from strawberry.utils.str_converters import to_camel_case

from pricebook.errors import HasChanged, InvalidCursor, InvalidField, NotAllowed, NotFound, PriceConflict
from pricebook.graphql.codes import Code
from tickler.errors import ConditionFailed, InvalidInput, StoreUnavailable, TransactionConflict, VersionConflict
from tickler.errors import InvalidCursor as InvalidTableCursor

MAX_ERRORS = 50  # that one answer has

log = logging.getLogger("pricebook.graphql")


def formatted(errors: Sequence[GraphQLError]) -> list[dict[str, Any]]:
    """Return errors as the answer has them. The details of unexpected ones go to the log only."""
    return [_formatted(error) for error in errors[:MAX_ERRORS]]


def _formatted(error: GraphQLError) -> dict[str, Any]:
    shown: dict[str, Any] = dict(error.formatted)
    code, message, fields = _said(error)
    shown["message"] = message
    shown["extensions"] = {"code": code, **fields}
    return shown


def _said(error: GraphQLError) -> tuple[str, str, dict[str, object]]:
    """Return the code and the message of an error, and what else programs may need to know."""
    if error.extensions and "code" in error.extensions:
        return str(error.extensions["code"]), error.message, {}
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    match cause:
        case None:
            return "INVALID_INPUT", error.message, {}
        case InvalidCursor() | InvalidTableCursor():
            return "INVALID_CURSOR", str(cause), {}
        case InvalidField():
            field = to_camel_case(cause.field)
            return "INVALID_INPUT", f"{field}: {cause.reason}", {"field": field}
        case PriceConflict():
            other = {} if cause.change_set is None else {"changeSet": cause.change_set}
            return "CONFLICT", str(cause), {"store": cause.store, **other}
        case HasChanged():
            return "CONFLICT", str(cause), {"rev": cause.rev}
    known = _code_of(cause)
    if known is not None:
        return known, str(cause), {}
    log.error("a field failed: %s", error.path, exc_info=cause)
    return "INTERNAL", "internal error: see the log of pricebook", {}


def _code_of(cause: Exception) -> Code | None:
    match cause:
        case NotFound():
            return "NOT_FOUND"
        case TransactionConflict() | ConditionFailed() | VersionConflict():
            return "CONFLICT"
        case NotAllowed():
            return "NOT_ALLOWED"
        case InvalidInput():
            return "INVALID_INPUT"
        case StoreUnavailable():
            return "UNAVAILABLE"
    return None
