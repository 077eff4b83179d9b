"""Which HTTP status each error has, outside GraphQL."""

from __future__ import annotations

import logging

from litestar.exceptions import HTTPException

from pricebook.errors import InvalidCursor, InvalidField, LacksRole, NotAllowed, NotFound
from tickler.errors import ConditionFailed, InvalidInput, StoreUnavailable, TransactionConflict, VersionConflict
from tickler.web import Refused

log = logging.getLogger("pricebook.web")


def refused_of(error: Exception, request: str = "") -> Refused:
    """Return the refusal that an error means. The details of an unexpected error go to the log only, with the request's id."""
    match error:
        case Refused():
            return error
        case HTTPException():
            return Refused(error.status_code, _detail(error), headers=dict(error.headers or {}))
        case NotFound():
            return Refused(404, str(error))
        case LacksRole():
            return Refused(403, str(error))
        case NotAllowed():
            return Refused(409, str(error))
        case InvalidField():
            return Refused(422, error.reason, error.field)
        case InvalidCursor() | InvalidInput():
            return Refused(422, str(error))
        case TransactionConflict() | ConditionFailed() | VersionConflict():
            return Refused(409, "somebody else changed this at the same moment: read it again, and try again")
        case StoreUnavailable():
            return Refused(503, "the store does not answer: try again in a moment", headers={"retry-after": "5"})
    log.error("request %s failed", request, exc_info=error)
    return Refused(500, "internal error: see the log of pricebook")


def _detail(error: HTTPException) -> str:
    if error.status_code == 404:
        return "there is no such page: queries go to /graphql"
    if error.status_code == 405:
        return "this address does not support this method"
    return error.detail or "this request cannot be answered"
