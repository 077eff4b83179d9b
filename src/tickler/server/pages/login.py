"""Signing in with a token, once; a cookie names it from then on."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post

from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.middleware.addresses import address_of
from tickler.server.middleware.rate_limit import too_many_failures
from tickler.server.pages.rendering import form_of, inside, page, see


@get("/login", opt={"scope": "nothing"})
async def login(request: HttpRequest) -> Response[str]:
    return await page(request, "login", "", next=inside(request.query_params.get("next")), error="")


@post("/login", opt={"scope": "nothing"}, status_code=200)
async def sign_in(request: HttpRequest) -> Response[Any]:
    service = context_of(request)
    fields = await form_of(request)
    following = inside(fields.get("next"))
    token = await service.tickler.tokens.check(fields.get("token", "").strip())
    if token is None:
        if wait_s := service.failures.take(address_of(request.scope)):
            raise too_many_failures(wait_s)
        return await page(request, "login", "", 401, next=following, error="this token is not valid: it may have been revoked")
    await _end_session(request)  # the browser forgets its cookie now
    answer = see(following, "in")
    answer.headers["set-cookie"] = await service.sessions.cookie_for(token.id)
    return answer


@post("/logout", opt={"scope": "nothing"}, status_code=200)
async def sign_out(request: HttpRequest) -> Response[Any]:
    await form_of(request)
    await _end_session(request)
    answer = see("/login", "out")
    answer.headers["set-cookie"] = context_of(request).sessions.expired_cookie()
    return answer


HANDLERS = [login, sign_in, sign_out]


async def _end_session(request: HttpRequest) -> None:
    session = caller_of(request).session
    if session is not None:
        await context_of(request).sessions.end(session)
