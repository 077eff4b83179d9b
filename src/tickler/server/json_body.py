"""JSON bodies of requests, read strictly, and of responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from litestar import Response

from tickler.database.pacing import LONG_BYTES, RunInThread
from tickler.errors import InvalidInput
from tickler.model.schedule_json import read_schedule_json
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.web.problems import Refused

JSON = "application/json"
NDJSON = "application/x-ndjson"
MERGE_PATCH = "application/merge-patch+json"
ACCEPT_PATCH = f"{MERGE_PATCH}, {JSON}"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    return Response(_encode(value), status_code=status, media_type=JSON, headers=dict(headers or {}))


def empty_page() -> Response[bytes]:
    return json_response({"items": [], "next": None})


def check_bodiless(request: HttpRequest) -> None:
    """Refuse a GET that has a body."""
    if request.method == "GET" and (request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers):
        raise Refused(400, "a GET takes no body: leave it out")


async def json_body_of(request: HttpRequest, read: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return the JSON body, passed through `read`. A long body is decoded and read off the event loop."""
    kind = _media_type(request)
    if kind != JSON and not kind.endswith("+json"):
        raise Refused(415, "send JSON, with `content-type: application/json`", "content-type")
    return await _read_body(request, read)


async def merge_patch_of(request: HttpRequest, read: Callable[[Any], Any]) -> Any:
    """Return the JSON merge patch, passed through `read`. Refuse other patch formats, which would be misread as one."""
    if _media_type(request) not in (MERGE_PATCH, JSON):
        raise Refused(
            415, f"send a JSON merge patch, with `content-type: {MERGE_PATCH}`", "content-type", {"accept-patch": ACCEPT_PATCH}
        )
    return await _read_body(request, read)


async def read_off_loop(request: HttpRequest, size: int, read: Callable[[], T]) -> T:
    """Call `read`, on a thread if `size` is long, one at a time per caller."""
    if size <= LONG_BYTES:
        return read()
    return await off_loop(request)(read)


def off_loop(request: HttpRequest) -> RunInThread:
    """Return a function that runs work on the thread for long bodies, one at a time per caller."""
    return partial(context_of(request).reading_pool.run, caller_of(request).token_id or "")


def _media_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _read_body(request: HttpRequest, read: Callable[[Any], Any]) -> Any:
    body = await request.body()

    def decode() -> Any:
        try:
            value = read_schedule_json(body)
        except InvalidInput as error:
            raise Refused(400, f"the body {error}") from None
        return read(value)

    return await read_off_loop(request, len(body), decode)


async def empty_body(request: HttpRequest) -> None:
    """Refuse a body, except an empty object, which some clients always send."""
    if (await request.body()).strip() not in (b"", b"{}"):
        raise Refused(400, "this request takes no body: leave it out")
