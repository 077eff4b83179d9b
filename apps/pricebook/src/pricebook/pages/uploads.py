"""*Uploads*: files of prices, how far each is, and what was wrong with it, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from litestar import Response, get, post

from pricebook.errors import InvalidField
from pricebook.model import BulkOptions
from pricebook.pages.change_set_form import DAY, INSTANT
from pricebook.pages.clock import PageClock
from pricebook.pages.environment import in_path
from pricebook.pages.form_errors import FORM_ERRORS, errors_of
from pricebook.pages.rendering import clock_of, page, read_form, redirect
from pricebook.pages.requests import caller_of, page_args, page_links, part
from pricebook.web.context import HttpRequest, book_of, web_of
from pricebook.web.request_ids import request_id_of
from tickler.web import Refused

LISTED = 50
FAILURES = 100
FORM_TOKEN = "x-form-token"  # noqa: S105  # header of the script that sends a file
FIELDS = ("title", "begins", "day", "at", "currency", "format", "text")
FILES = "/uploads/file"  # its bodies may be of any length
PASTED = "/uploads/pasted"


@get("/uploads")
async def uploads(request: HttpRequest) -> Response[str]:
    return await _uploads_page(request)


@post(FILES, status_code=201)
async def upload(request: HttpRequest) -> Response[Any]:
    """Take a file as it comes, from the script of the page. Its options are in the address."""
    web = web_of(request)
    client_id = web.visitor(request.scope).client_id
    if not await web.forms.is_token(request.headers.get(FORM_TOKEN, ""), client_id):
        raise Refused(403, "the page is too old: open it again")
    options = read_options(dict(request.query_params.items()), clock_of(request))
    job = await book_of(request).bulk.start(caller_of(request), options, request.stream(), request=request_id_of(request.scope))
    return Response({"location": f"/uploads/{in_path(job.id)}?notice=uploaded"}, status_code=201)


@post(PASTED, status_code=200)
async def pasted(request: HttpRequest) -> Response[Any]:
    """Take lines that somebody has pasted: the way without JavaScript."""
    caller_of(request).require("edit")
    fields = await read_form(request)

    async def source() -> AsyncIterator[bytes]:
        yield fields.get("text", "").encode()

    try:
        if not fields.get("text", "").strip():
            raise InvalidField("text", "is empty: paste lines, the names of the columns first")
        options = read_options(fields, clock_of(request))
        job = await book_of(request).bulk.start(caller_of(request), options, source(), request=request_id_of(request.scope))
    except FORM_ERRORS as error:
        return await _uploads_page(request, 422, fields=fields, errors=errors_of(error, FIELDS))
    return redirect(f"/uploads/{in_path(job.id)}", "uploaded")


@get("/uploads/{id:str}")
async def show(request: HttpRequest) -> Response[str]:
    bulk, caller, id = book_of(request).bulk, caller_of(request), part(request, "id")
    job = await bulk.get(caller, id)
    failures = await bulk.failures(caller, id, page_args(request, FAILURES))
    path = f"/uploads/{in_path(id)}"
    return await page(
        request,
        "upload",
        "uploads",
        job=job,
        failures=failures.nodes,
        path=path,
        links=page_links(failures, path),
    )


@post("/uploads/{id:str}/cancel", status_code=200)
async def cancel(request: HttpRequest) -> Response[bytes]:
    id = part(request, "id")
    await read_form(request)
    await book_of(request).bulk.cancel(caller_of(request), id)
    return redirect(f"/uploads/{in_path(id)}", "upload-cancelled")


HANDLERS = [uploads, upload, pasted, show, cancel]


def read_options(fields: Mapping[str, str], clock: PageClock) -> BulkOptions:
    """Return the options that a form or an address says."""
    format = fields.get("format", "csv")
    if format not in ("csv", "ndjson"):
        raise InvalidField("format", "choose CSV or NDJSON")
    return BulkOptions(
        format="ndjson" if format == "ndjson" else "csv",
        title=fields.get("title", "").strip(),
        effective=_effective(fields, clock),
        currency=fields.get("currency", "").strip().upper(),
        dry_run=bool(fields.get("dry_run")),
        all_or_nothing=bool(fields.get("all_or_nothing")),
        submit=bool(fields.get("submit")),
    )


def _effective(fields: Mapping[str, str], clock: PageClock) -> str:
    if fields.get("begins") == DAY:
        return fields.get("day", "").strip()
    if fields.get("begins") == INSTANT:
        at = clock.read_input(fields.get("at", ""))
        if at is None:
            raise InvalidField("at", "choose a day and a time, such as 2026-12-01T09:00")
        return at.isoformat()
    return ""


async def _uploads_page(
    request: HttpRequest, status: int = 200, *, fields: Mapping[str, str] | None = None, errors: Mapping[str, str] | None = None
) -> Response[str]:
    caller = caller_of(request)
    found = await book_of(request).bulk.recent(caller, page_args(request, LISTED))
    begun = {"begins": DAY, "day": clock_of(request).tomorrow.isoformat(), "currency": "EUR", "format": "csv"}
    return await page(
        request,
        "uploads",
        "uploads",
        status,
        jobs=found.nodes,
        errors=errors or {},
        values=dict.fromkeys((*FIELDS, "dry_run", "all_or_nothing", "submit"), "") | dict(fields or begun),
        links=page_links(found, "/uploads"),
    )
