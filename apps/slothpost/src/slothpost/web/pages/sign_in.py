"""Sign in by a link that works once, and sign out."""

from __future__ import annotations

from litestar import Response, get, post

from slothpost.web.context import HttpRequest, part, slothpost_of, user_of, web_of
from slothpost.web.pages.rendering import EVERYBODY, page, read_form, redirect
from tickler.web import Refused, local_path

TOO_OLD = "this link was used, or is too old: ask for another"


def sign_in_path(code: str) -> str:
    return f"/sign-in/{code}"


@get("/sign-in", opt=EVERYBODY)
async def sign_in_page(request: HttpRequest) -> Response[str]:
    """Say where sign-in links come from."""
    return await page(request, "sign_in", "", code=None, next=local_path(request.query_params.get("next")), who=None)


@get("/sign-in/{code:str}", opt=EVERYBODY)
async def confirm(request: HttpRequest) -> Response[str]:
    """Show a button: programs that scan mail open links, and must not use them up."""
    code = part(request, "code")
    web = web_of(request)
    user_id = await web.links.find(code)
    found = None if user_id is None else await _user(request, user_id)
    if found is None:
        web.count_failure(request.scope)
        raise Refused(404, TOO_OLD)
    return await page(request, "sign_in", "", code=code, next=local_path(request.query_params.get("next")), who=found)


@post("/sign-in/{code:str}", status_code=200, opt=EVERYBODY)
async def sign_in(request: HttpRequest) -> Response[bytes]:
    code = part(request, "code")
    web = web_of(request)
    fields = await read_form(request)
    user_id = await web.links.redeem(code)
    if user_id is None or await _user(request, user_id) is None:
        raise Refused(404, TOO_OLD)
    answer = redirect(local_path(fields.get("next")), "in")
    answer.headers["set-cookie"] = await web.sign_in(request.scope, user_id)
    return answer


@post("/sign-out", status_code=200, opt=EVERYBODY)
async def sign_out(request: HttpRequest) -> Response[bytes]:
    web = web_of(request)
    await read_form(request)
    answer = redirect("/sign-in", "out")
    answer.headers["set-cookie"] = await web.sign_out(request.scope)
    return answer


@post("/sign-out-everywhere", status_code=200)
async def sign_out_everywhere(request: HttpRequest) -> Response[bytes]:
    web = web_of(request)
    await read_form(request)
    await web.sessions.end_all(user_of(request).id)
    answer = redirect("/sign-in", "out-everywhere")
    answer.headers["set-cookie"] = await web.sign_out(request.scope)
    return answer


HANDLERS = [sign_in_page, confirm, sign_in, sign_out, sign_out_everywhere]


async def _user(request: HttpRequest, user_id: str) -> str | None:
    """Return the name of a user; None if there is no such user any more."""
    found = await slothpost_of(request).users.get(user_id)
    return None if found is None else found.name
