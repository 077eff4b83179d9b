"""Sign in with a token; a cookie holds the session from then on."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.middleware.caller import WRONG_TOKENS
from tickler.server.pages.rendering import page, read_form, redirect
from tickler.web.addresses import address_of
from tickler.web.redirects import local_path


@get("/login", opt={"scope": "nothing"})
async def login(request: HttpRequest) -> Response[str]:
    return await page(request, "login", "", next=local_path(request.query_params.get("next")), error="")


@post("/login", opt={"scope": "nothing"}, status_code=200)
async def sign_in(request: HttpRequest) -> Response[Any]:
    service = context_of(request)
    fields = await read_form(request)
    next_path = local_path(fields.get("next"))
    token = await service.tickler.tokens.check(fields.get("token", "").strip())
    if token is None:
        service.failures.check(address_of(request.scope), WRONG_TOKENS)
        return await page(request, "login", "", 401, next=next_path, error="Invalid token. It may have been revoked.")
    await _end_session(request)  # the new cookie replaces its cookie
    answer = redirect(next_path, "in")
    answer.headers["set-cookie"] = await service.sessions.cookie_for(token.id)
    return answer


@post("/logout", opt={"scope": "nothing"}, status_code=200)
async def sign_out(request: HttpRequest) -> Response[Any]:
    await read_form(request)
    await _end_session(request)
    answer = redirect("/login", "out")
    answer.headers["set-cookie"] = context_of(request).sessions.expired_cookie()
    return answer


HANDLERS = [login, sign_in, sign_out]


async def _end_session(request: HttpRequest) -> None:
    session = caller_of(request).session
    if session is not None:
        await context_of(request).sessions.end(session)
