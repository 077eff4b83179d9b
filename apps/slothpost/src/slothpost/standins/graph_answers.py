"""Requests to the local Threads, and its errors in the shape that Meta's Graph API gives them."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

import msgspec
from aiohttp import web


class GraphFault(msgspec.Struct, frozen=True, kw_only=True):
    """An error. `message` is for developers, `user_message` for people."""

    code: int
    message: str
    subcode: int | None = None
    user_message: str | None = None
    status: int = HTTPStatus.BAD_REQUEST
    is_transient: bool = False


INVALID_TOKEN = GraphFault(code=190, message="Error validating access token: the session is invalid.", subcode=460)
EXPIRED_TOKEN = GraphFault(code=190, message="Error validating access token: session has expired.", subcode=463)
TOO_MANY_CALLS = GraphFault(code=4, message="Application request limit reached", status=HTTPStatus.FORBIDDEN)
UNKNOWN_ERROR = GraphFault(
    code=1, message="An unknown error has occurred.", status=HTTPStatus.INTERNAL_SERVER_ERROR, is_transient=True
)
NO_PERMISSION = GraphFault(code=10, message="Application does not have permission for this action", status=HTTPStatus.FORBIDDEN)
NO_SUCH_ID = GraphFault(code=24, message="The requested resource does not exist", subcode=4279009, user_message="Media Not Found")


def invalid(message: str, user_message: str | None = None) -> GraphFault:
    return GraphFault(code=100, message=message, user_message=user_message)


def fault_answer(fault: GraphFault) -> web.Response:
    error: dict[str, object] = {"message": fault.message, "type": "OAuthException", "code": fault.code, "fbtrace_id": "local"}
    if fault.subcode is not None:
        error["error_subcode"] = fault.subcode
    if fault.user_message is not None:
        error |= {"error_user_title": "Something went wrong", "error_user_msg": fault.user_message}
    if fault.is_transient:
        error["is_transient"] = True
    return web.json_response({"error": error}, status=fault.status)


def limited(reset_at: datetime | None) -> web.Response:
    """Answer that there were too many calls. Threads does not say until when."""
    return fault_answer(TOO_MANY_CALLS)


async def form_of(request: web.Request) -> dict[str, str]:
    return {name: str(value) for name, value in (await request.post()).items()}
