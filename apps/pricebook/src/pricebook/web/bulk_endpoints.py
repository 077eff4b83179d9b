"""`/bulk` and `/export`: imports as jobs, and exports as streams, for programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.exceptions import HTTPException
from litestar.response import Stream

from pricebook.bulk.export import ExportOptions, Exports
from pricebook.bulk.failures_csv import csv_of_failures
from pricebook.bulk.format_names import read_delimiter, read_format
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField
from pricebook.model import BulkFormat, BulkOptions
from pricebook.web.bulk_answers import JobAnswer, PageAnswer, failure_answer, job_answer, page_answer
from pricebook.web.context import HttpRequest, book_of, caller_of_request
from pricebook.web.query_options import flag, number, one, read_options
from pricebook.web.request_ids import request_id_of
from tickler.web import Refused

JSON = "application/json"
FORMATS: dict[str, BulkFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
}
OPTIONS = (
    "format",
    "title",
    "effective",
    "until",
    "reason",
    "currency",
    "dry_run",
    "all_or_nothing",
    "submit",
    "idempotency_key",
)
PAGE = ("first", "after", "last", "before")


@post("/bulk", status_code=202)
async def start(request: HttpRequest) -> Response[bytes]:
    """Keep the body, and begin to import it. The answer says where to look how far that is."""
    options = _bulk_options(request)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "a body that is compressed is not read: send it as it is", "content-encoding")
    caller = caller_of_request(request)
    job = await book_of(request).bulk.start(caller, options, _body(request), request=request_id_of(request.scope))
    return _json(job_answer(job), 202, {"location": f"/bulk/{job.id}"})


@get("/bulk")
async def recent(request: HttpRequest) -> Response[bytes]:
    """List jobs, newest first."""
    page = await book_of(request).bulk.recent(caller_of_request(request), _page(read_options(request, PAGE)))
    return _json(page_answer(page, [job_answer(job) for job in page.nodes]))


@get("/bulk/{id:str}")
async def show(request: HttpRequest) -> Response[bytes]:
    read_options(request, ())
    return _json(job_answer(await book_of(request).bulk.get(caller_of_request(request), _id(request))))


@get("/bulk/{id:str}/failures")
async def failures(request: HttpRequest) -> Response[bytes] | Stream:
    """List the lines that were refused: in pages, or all of them as CSV."""
    options = read_options(request, (*PAGE, "format"))
    bulk, caller, id = book_of(request).bulk, caller_of_request(request), _id(request)
    if one(options, "format") == "csv":
        found = await bulk.all_failures(caller, id)
        return Stream(csv_of_failures(found), media_type="text/csv", headers=_attachment(f"failures-{id}.csv"))
    if one(options, "format") not in ("", "json"):
        raise InvalidField("format", "use json or csv")
    page = await bulk.failures(caller, id, _page(options))
    return _json(page_answer(page, [failure_answer(each) for each in page.nodes]))


@post("/bulk/{id:str}/cancel", status_code=200)
async def cancel(request: HttpRequest) -> Response[bytes]:
    """Stop a job, and take back what it has added. One that has ended is shown as it is."""
    read_options(request, ())
    return _json(job_answer(await book_of(request).bulk.cancel(caller_of_request(request), _id(request))))


@get("/export")
async def export(request: HttpRequest) -> Stream:
    """Send the prices that count now, as a stream. It breaks off if something fails: an export ends with a line break."""
    options = read_options(request, ("format", "delimiter"), ("store", "channel", "type"))
    chosen = ExportOptions(
        format=read_format(one(options, "format") or "ndjson"),
        delimiter=read_delimiter(one(options, "delimiter") or ","),
        stores=tuple(options.get("store", ())),
        channels=tuple(options.get("channel", ())),
        types=tuple(options.get("type", ())),
    )
    book = book_of(request)
    found = await Exports(book.db, book.now, book.timing).export(caller_of_request(request), chosen)
    return Stream(found.pieces, media_type=found.kind, headers=_attachment(f"prices.{chosen.format}"))


BULK_ROUTES: list[Any] = [start, recent, show, failures, cancel, export]
LARGE_BODIES = {"/bulk": None}
"""Paths whose bodies are streams of any length, for `WebSettings.bodies`."""


def _id(request: HttpRequest) -> str:
    return str(request.path_params["id"])


def _bulk_options(request: HttpRequest) -> BulkOptions:
    options = read_options(request, OPTIONS)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    format = one(options, "format") or FORMATS.get(kind, "")
    if not format:
        raise Refused(415, f"say what the body is: with content-type: {' or '.join(list(FORMATS)[:2])}", "content-type")
    key = request.headers.get("idempotency-key", "") or one(options, "idempotency_key")
    return BulkOptions(
        format=read_format(format),
        title=one(options, "title"),
        effective=one(options, "effective"),
        until=one(options, "until"),
        reason=one(options, "reason"),
        currency=one(options, "currency"),
        dry_run=flag(options, "dry_run"),
        all_or_nothing=flag(options, "all_or_nothing"),
        submit=flag(options, "submit"),
        idempotency_key=key,
    )


async def _body(request: HttpRequest) -> AsyncIterator[bytes]:
    with _disconnecting():
        async for piece in request.stream():
            yield piece


@contextmanager
def _disconnecting() -> Iterator[None]:
    """Litestar calls it an error of the server if a client goes away."""
    try:
        yield
    except HTTPException as error:
        raise Refused(400, "the connection closed before the whole body arrived") from error


def _page(options: dict[str, list[str]]) -> PageArgs:
    return PageArgs(
        first=number(options, "first"),
        after=one(options, "after") or None,
        last=number(options, "last"),
        before=one(options, "before") or None,
    )


def _json(answer: JobAnswer | PageAnswer, status: int = 200, headers: dict[str, str] | None = None) -> Response[bytes]:
    return Response(msgspec.json.encode(answer), status_code=status, media_type=JSON, headers=headers)


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
