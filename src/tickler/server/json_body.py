"""What requests and answers carry: JSON, read strictly, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from litestar import Response

from tickler.database.pacing import LONG_BYTES, RunInThread
from tickler.errors import InvalidInput
from tickler.model.schedule_json import read_schedule_json
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.problems import Refused

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
ACCEPT_PATCH = f"{MERGE_PATCH}, {JSON}"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


def answered(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    return Response(_encode(value), status_code=status, media_type=JSON, headers=dict(headers or {}))


def check_bodiless(request: HttpRequest) -> None:
    """What only reads has no body."""
    if request.method == "GET" and (request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers):
        raise Refused(400, "nobody reads the body of a GET: leave it out")


async def body_of(request: HttpRequest, read: Callable[[Any], Any] = lambda value: value) -> Any:
    """The JSON that was sent, or what `read` makes of it: it is called where others do not wait."""
    kind = _media_type(request)
    if kind != JSON and not kind.endswith("+json"):
        raise Refused(415, "send JSON, with `content-type: application/json`", "content-type")
    return await _sent(request, read)


async def merge_patch_of(request: HttpRequest, read: Callable[[Any], Any]) -> Any:
    """What `read` makes of the JSON merge patch that was sent. Other kinds of patches would be taken for something else."""
    if _media_type(request) not in (MERGE_PATCH, JSON):
        raise Refused(
            415, f"send a JSON merge patch, with `content-type: {MERGE_PATCH}`", "content-type", {"accept-patch": ACCEPT_PATCH}
        )
    return await _sent(request, read)


async def read_aside(request: HttpRequest, size: int, read: Callable[[], T]) -> T:
    """What is long is read on a thread, one at a time for each caller."""
    if size <= LONG_BYTES:
        return read()
    return await aside_of(request)(read)


def aside_of(request: HttpRequest) -> RunInThread:
    """Runs what takes long on the thread that reads long bodies, one at a time for each caller."""
    return partial(service_of(request).reading_pool.run, caller(request).token_id or "")


def _media_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _sent(request: HttpRequest, read: Callable[[Any], Any]) -> Any:
    body = await request.body()
    return await read_aside(request, len(body), partial(_read, body, read))


def _read(body: bytes, read: Callable[[Any], Any]) -> Any:
    try:
        value = read_schedule_json(body)
    except InvalidInput as error:
        raise Refused(400, f"the body {error}") from None
    return read(value)


async def empty_body(request: HttpRequest) -> None:
    """Of what needs to be told nothing: it may send an empty object."""
    sent = await request.body()
    if sent.strip() not in (b"", b"{}"):
        raise Refused(400, "nobody reads a body here: leave it out")
