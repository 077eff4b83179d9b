"""Sign in by a link that works once, and sign out."""

from __future__ import annotations

from litestar import Response, get, post

from pricebook.pages.rendering import EVERYBODY, page, read_form, redirect
from pricebook.pages.requests import asked, part
from pricebook.web.context import HttpRequest, book_of, web_of
from tickler.web import Refused, local_path

TOO_OLD = "this link was used, or is too old: ask for another"


@get("/sign-in", opt=EVERYBODY)
async def sign_in_page(request: HttpRequest) -> Response[str]:
    """Say where sign-in links come from."""
    return await page(request, "sign_in", "", code=None, next=local_path(asked(request, "next")), who=None)


@get("/sign-in/{code:str}", opt=EVERYBODY)
async def confirm(request: HttpRequest) -> Response[str]:
    """Show a button: programs that scan mail open links, and must not use them up."""
    code = part(request, "code")
    web = web_of(request)
    id = await web.links.find(code)
    found = None if id is None else await book_of(request).people.get(id)
    if found is None:
        web.count_failure(request.scope)
        raise Refused(404, TOO_OLD)
    return await page(request, "sign_in", "", code=code, next=local_path(asked(request, "next")), who=found.name)


@post("/sign-in/{code:str}", status_code=200, opt=EVERYBODY)
async def sign_in(request: HttpRequest) -> Response[bytes]:
    web = web_of(request)
    fields = await read_form(request)
    id = await web.links.redeem(part(request, "code"))
    if id is None or await book_of(request).people.get(id) is None:
        raise Refused(404, TOO_OLD)
    answer = redirect(local_path(fields.get("next")), "in")
    answer.headers["set-cookie"] = await web.sign_in(request.scope, id)
    return answer


@post("/sign-out", status_code=200, opt=EVERYBODY)
async def sign_out(request: HttpRequest) -> Response[bytes]:
    web = web_of(request)
    await read_form(request)
    answer = redirect("/sign-in", "out")
    answer.headers["set-cookie"] = await web.sign_out(request.scope)
    return answer


HANDLERS = [sign_in_page, confirm, sign_in, sign_out]
