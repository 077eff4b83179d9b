"""Turns every error into problem+json, with its status, the field at fault and the remedy."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException

from tickler import errors
from tickler.errors import InvalidInput, InvalidWhen, NeverFires
from tickler.web.problems import Answer, Problem, Refused, problem_answer

_NAMED = re.compile(r"([a-z_]+): ")
_REMEDIES = {404: "unknown path: see /openapi.json", 405: "this path does not support this method: see the header `allow`"}

log = logging.getLogger("tickler.server")


def problem_of(error: Exception) -> Problem:
    """Describe an error. The details of an unexpected error go to the log only."""
    status, field = _status_of(error), getattr(error, "field", None)
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
        detail = "internal error: see the log of the service"
    if isinstance(error, HTTPException):
        detail = _REMEDIES.get(status, detail)
    if (isinstance(error, InvalidWhen) and field not in ("tz", "starts_at", "ends_at", "at")) or isinstance(error, NeverFires):
        field = "when"
    elif isinstance(error, InvalidInput) and field is None and (named := _NAMED.match(detail)):
        field = named[1]
    title = HTTPStatus(status).phrase
    return Problem(f"https://tickler.invalid/problems/{title.lower().replace(' ', '-')}", title, status, detail, field)


def problem_response(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    answer = answer_of(error)
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))


def answer_of(error: Exception) -> Answer:
    return problem_answer(problem_of(error), headers_of(error))


def headers_of(error: Exception) -> dict[str, str]:
    headers = dict(error.headers) if isinstance(error, Refused) else {}
    if isinstance(error, HTTPException) and error.headers:
        headers |= dict(error.headers)
    if _status_of(error) == 503:
        headers["retry-after"] = "5"
    return headers


def _status_of(error: Exception) -> int:
    match error:
        case Refused():
            return error.status
        case HTTPException():
            return error.status_code
        case errors.ScheduleNotFound() | errors.FireNotFound():
            return 404
        case errors.SendConflict():
            return 409
        case errors.VersionConflict():
            return 412
        case NeverFires() | errors.InvalidSchedule() | InvalidWhen() | InvalidInput():
            return 422
        case errors.StoreUnavailable() | errors.SchemaError() | errors.WorkerUnfit():
            return 503
    return 500
