"""Answers errors with problem+json: a code for programs, the field at fault, and a sentence for people."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from slothpost.errors import NotAllowed, SlothpostError
from slothpost.web.context import HttpRequest
from slothpost.web.problems import refused_of
from tickler.errors import ConditionFailed, InvalidCursor, TicklerError, TransactionConflict, VersionConflict
from tickler.web import Refused

MEDIA_TYPE = "application/problem+json"

_CODES = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    415: "unsupported_media_type",
    422: "invalid_field",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
}
_UNROUTED = {404: "unknown path: see /api/openapi.json", 405: "this path does not take this method: see the header `allow`"}


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error. `code` is for programs and `detail` for people; `field` is the part of the request that was wrong.

    What is refused before it reaches the API, such as a token that was revoked, has a status and no code.
    """

    title: str
    status: int
    detail: str
    code: str = ""
    field: str = ""
    type: str = "about:blank"


def problem_response(request: HttpRequest, error: Exception) -> Response[bytes]:
    """Answer an error. Litestar calls it as an exception handler."""
    refused = _refused(error)
    status = refused.status
    code = "not_allowed" if isinstance(error, NotAllowed) else _CODES.get(status, f"http_{status}")
    problem = Problem(HTTPStatus(status).phrase, status, str(refused), code, refused.field or "")
    return Response(msgspec.json.encode(problem), status_code=status, media_type=MEDIA_TYPE, headers=refused.headers)


PROBLEM_HANDLERS: ExceptionHandlersMap = dict.fromkeys((SlothpostError, TicklerError, HTTPException, Exception), problem_response)


def _refused(error: Exception) -> Refused:
    match error:
        case InvalidCursor():
            return Refused(422, str(error), "after")
        case ConditionFailed() | TransactionConflict() | VersionConflict():
            return Refused(409, "somebody else changed this meanwhile: read it again, then repeat the request")
        case HTTPException(status_code=(404 | 405) as status):
            return Refused(status, _UNROUTED[status], headers=dict(error.headers or {}))
    return refused_of(error)
