"""`/v1/schedules:import` and `:export`: many schedules, a line of JSON each, as streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.response import Stream
from litestar.response.base import ASGIResponse

from tickler.errors import PartlyWritten, TicklerError
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.schedules.schedules import Schedules
from tickler.server.audit_log import AffectedOwners, record_many
from tickler.server.authorization import Nothing, check_target, visible_owner
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.json_body import aside_of
from tickler.server.middleware.caller import Caller
from tickler.server.problems import Refused, problem_of
from tickler.server.query_params import QueryParams
from tickler.server.spooled_response import SpooledResponse
from tickler.transfer.ndjson import LineResult, export_lines, import_lines

NDJSON = "application/x-ndjson"

_NO_MORE = "nothing from here on was put"


@post("/v1/schedules:import", opt={"scope": "write"}, status_code=200)
async def import_schedules(request: HttpRequest) -> ASGIResponse:
    """Put a schedule a line; the answer has a line a row, as they are done: what became of it, and why not."""
    QueryParams(request)
    if request.headers.get("idempotency-key") is not None:
        raise Refused(400, "an import may be repeated as it is: leave the idempotency key out", "idempotency-key")
    return SpooledResponse(iterator=_imported(request), media_type=NDJSON, status_code=200)


@get("/v1/schedules:export", opt={"scope": "read"})
async def export_schedules(request: HttpRequest) -> Stream | Response[bytes]:
    """Every schedule a line, as an import takes them; one that cannot be written down has a line with an `error`."""
    query = QueryParams(request, "owner")
    try:
        owner = visible_owner(request, query.text("owner"))
    except Nothing:
        return Response(b"", media_type=NDJSON)
    pieces = _exported(service_of(request).tickler.schedules, owner)
    first = await anext(pieces, b"")  # if the store does not answer, it is said with a status
    return Stream(_chained(first, pieces), media_type=NDJSON)


HANDLERS = [import_schedules, export_schedules]


async def _imported(request: HttpRequest) -> AsyncIterator[bytes]:
    """What was put stays put, whatever happens to the rest."""
    service, who = service_of(request), caller(request)
    put = refused = line = 0
    touched = AffectedOwners()
    failure: TicklerError | None = None
    try:
        async for result in import_lines(
            service.tickler.schedules,
            _pieces(request),
            check=lambda schedule: _check(who, schedule),
            pace=service.pace,
            aside=aside_of(request),
        ):
            put, refused, line = put + (result.error is None), refused + (result.error is not None), result.line
            if result.error is None and result.owner is not None:
                touched.add(result.owner)
            yield _line(result)
    except TicklerError as error:
        failure = error
    await record_many(request, "imported", touched, f"{put} put, {refused} refused")
    if failure is not None:
        said = "some from here on were put, import them again" if isinstance(failure, PartlyWritten) else _NO_MORE
        yield _line(LineResult(line=line + 1, error=f"{said}: {problem_of(failure).detail}"))


async def _pieces(request: HttpRequest) -> AsyncIterator[bytes]:
    while True:
        message: Any = await request.receive()
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _exported(schedules: Schedules, owner: str | None) -> AsyncIterator[bytes]:
    torn: list[StoredSchedule] = []
    async for piece in export_lines(schedules, owner=owner, left_out=torn.append):
        yield piece
        if torn:
            yield b"".join(map(_torn_line, torn))
            torn.clear()
    if torn:
        yield b"".join(map(_torn_line, torn))


def _torn_line(schedule: StoredSchedule) -> bytes:
    """An import refuses it, and says so."""
    reason = "was written by a newer Tickler: upgrade" if schedule.newer else f"does not read ({schedule.reason}): put it again"
    return msgspec.json.encode({"owner": schedule.owner, "key": schedule.key, "error": reason}) + b"\n"


async def _chained(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


def _check(who: Caller, schedule: Schedule) -> None:
    """What is not theirs to write is refused as any other line is."""
    if not who.may_see(schedule.owner):
        raise Refused(404, "there is no such owner", "owner")
    check_target(who, schedule.target)


def _line(result: LineResult) -> bytes:
    return msgspec.json.encode(result) + b"\n"
