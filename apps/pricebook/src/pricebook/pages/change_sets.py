"""A change set: its form, its prices, and what people decide about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from litestar import Response, get, post

from pricebook.access.caller import Caller
from pricebook.errors import LacksRole, NotAllowed
from pricebook.model import ChangeSet
from pricebook.pages.change_set_form import FIELDS, FormValues, empty_values, read_change, read_values, values_of
from pricebook.pages.change_set_lines import FIELDS as LINE_FIELDS
from pricebook.pages.change_set_lines import lines_of, read_keys, read_line
from pricebook.pages.change_set_view import change_set_page
from pricebook.pages.environment import in_path, sentence_case
from pricebook.pages.form_errors import FORM_ERRORS, FieldErrors, errors_of
from pricebook.pages.rendering import clock_of, page, read_form, redirect
from pricebook.pages.requests import caller_of, part
from pricebook.web.context import HttpRequest, book_of
from pricebook.web.request_ids import request_id_of
from tickler.web import Refused

Fields = Mapping[str, str]
Decision = Callable[[HttpRequest, str, Fields], Awaitable[ChangeSet]]


@get("/new-change-set")
async def new_change_set(request: HttpRequest) -> Response[str]:
    _editor(request)
    return await _form(request, empty_values(clock_of(request)))


@post("/new-change-set", status_code=200)
async def create(request: HttpRequest) -> Response[Any]:
    caller = _editor(request)
    values = read_values(await read_form(request))
    try:
        new = read_change(values, clock_of(request))
        made = await book_of(request).change_sets.create(caller, new, request=request_id_of(request.scope))
    except FORM_ERRORS as error:
        return await _form(request, values, errors_of(error, FIELDS))
    return redirect(_path(made.id), "created")


@get("/change-sets/{id:str}")
async def change_set(request: HttpRequest) -> Response[str]:
    return await change_set_page(request, part(request, "id"))


@get("/change-sets/{id:str}/edit")
async def edit_form(request: HttpRequest) -> Response[str]:
    caller = _editor(request)
    found = await book_of(request).change_sets.get(caller, part(request, "id"))
    return await _form(request, values_of(found, clock_of(request)), found=found)


@post("/change-sets/{id:str}/edit", status_code=200)
async def edit(request: HttpRequest) -> Response[Any]:
    book, caller, id = book_of(request), _editor(request), part(request, "id")
    fields = await read_form(request)
    values = read_values(fields)
    try:
        new = read_change(values, clock_of(request))
        await book.change_sets.edit(caller, id, new, rev=_rev(fields), request=request_id_of(request.scope))
    except FORM_ERRORS as error:
        found = await book.change_sets.get(caller, id)
        return await _form(request, values, errors_of(error, FIELDS), found=found)
    return redirect(_path(id), "saved")


@post("/change-sets/{id:str}/lines", status_code=200)
async def add_lines(request: HttpRequest) -> Response[Any]:
    book, caller, id = book_of(request), _editor(request), part(request, "id")
    values = read_line(await read_form(request))
    try:
        lines = await lines_of(caller, book.stores, values)
        await book.change_sets.put_lines(caller, id, lines, request=request_id_of(request.scope))
    except FORM_ERRORS as error:
        return await change_set_page(request, id, 422, values=values, errors=errors_of(error, LINE_FIELDS))
    return redirect(f"{_path(id)}#lines", "added")


@post("/change-sets/{id:str}/remove-lines", status_code=200)
async def remove_lines(request: HttpRequest) -> Response[Any]:
    id = part(request, "id")
    fields = await read_form(request)
    keys = read_keys(fields.all("key"))
    await book_of(request).change_sets.remove_lines(caller_of(request), id, keys, request=request_id_of(request.scope))
    return redirect(f"{_path(id)}#lines", "removed")


@post("/change-sets/{id:str}/{decision:str}", status_code=200)
async def decide(request: HttpRequest) -> Response[Any]:
    """Carry out a decision, and show what became of it; if it is refused, the page of the change set says why."""
    id, name = part(request, "id"), part(request, "decision")
    fields = await read_form(request)
    if name not in DECISIONS:
        raise Refused(404, "there is no such page")
    decision, notice = DECISIONS[name]
    try:
        decided = await decision(request, id, fields)
    except LacksRole:
        raise
    except NotAllowed as error:
        return await change_set_page(request, id, 409, problem=sentence_case(str(error)))
    return redirect(_path(decided.id), notice)


async def _submit(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.submit(caller_of(request), id, rev=_rev(fields), **_request(request))


async def _send_back(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.send_back(caller_of(request), id, rev=_rev(fields), **_why(request, fields))


async def _approve(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.approve(caller_of(request), id, rev=_rev(fields), **_why(request, fields))


async def _unapprove(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.unapprove(caller_of(request), id, rev=None, **_why(request, fields))


async def _cancel(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.cancel(caller_of(request), id, rev=None, **_why(request, fields))


async def _roll_back(request: HttpRequest, id: str, fields: Fields) -> ChangeSet:
    return await book_of(request).change_sets.roll_back(caller_of(request), id, **_why(request, fields))


# Each decision, and the notice that the page shows after it.
DECISIONS: Mapping[str, tuple[Decision, str]] = {
    "submit": (_submit, "submitted"),
    "send-back": (_send_back, "sent-back"),
    "approve": (_approve, "approving"),
    "unapprove": (_unapprove, "unapproving"),
    "cancel": (_cancel, "cancelled"),
    "roll-back": (_roll_back, "rolled-back"),
}

HANDLERS = [new_change_set, create, change_set, edit_form, edit, add_lines, remove_lines, decide]


def _editor(request: HttpRequest) -> Caller:
    caller = caller_of(request)
    caller.require("edit")
    return caller


async def _form(
    request: HttpRequest, values: FormValues, errors: FieldErrors | None = None, *, found: ChangeSet | None = None
) -> Response[str]:
    return await page(
        request, "change_set_form", "changes", 422 if errors else 200, values=values, errors=errors or {}, found=found
    )  # fmt: skip


def _path(id: str) -> str:
    return f"/change-sets/{in_path(id)}"


def _rev(fields: Fields) -> int:
    """Return the revision that the page showed."""
    text = fields.get("rev", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise Refused(400, "the form is malformed: open the page again")
    return int(text)


def _request(request: HttpRequest) -> dict[str, str]:
    return {"request": request_id_of(request.scope)}


def _why(request: HttpRequest, fields: Fields) -> dict[str, str]:
    return {"reason": fields.get("reason", "").strip(), **_request(request)}
