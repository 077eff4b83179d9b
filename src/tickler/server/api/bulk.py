"""`/v1/schedules:import` and `:export`: streams of schedules, one JSON object per line."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from litestar import Response, get, post
from litestar.response import Stream
from litestar.response.base import ASGIResponse

from tickler.errors import PartlyWritten, TicklerError
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.schedules.schedules import Schedules
from tickler.server.audit_log import AffectedOwners, record_many
from tickler.server.authorization import check_target, owner_filter
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.json_body import NDJSON, off_loop
from tickler.server.middleware.caller import Caller
from tickler.server.problems import problem_of
from tickler.server.query_params import QueryParams
from tickler.server.spooled_response import SpooledResponse
from tickler.transfer.ndjson import LineResult, export_lines, import_lines
from tickler.web.body_limits import body_chunks
from tickler.web.problems import Refused

_NOTHING_PUT = "nothing from this line on was put"


@post("/v1/schedules:import", opt={"scope": "write"}, status_code=200)
async def import_schedules(request: HttpRequest) -> ASGIResponse:
    """Put one schedule per line. The response streams one result per line: the schedule that was put, or the error."""
    QueryParams(request)
    if request.headers.get("idempotency-key") is not None:
        raise Refused(400, "an import can be repeated safely: leave the idempotency key out", "idempotency-key")
    return SpooledResponse(iterator=_imported(request), media_type=NDJSON, status_code=200)


@get("/v1/schedules:export", opt={"scope": "read"})
async def export_schedules(request: HttpRequest) -> Stream | Response[bytes]:
    """Write one schedule per line, in the format of an import; a line with an `error` for one that cannot be exported."""
    visible = owner_filter(request, QueryParams(request, "owner").text("owner"))
    if visible is None:
        return Response(b"", media_type=NDJSON)
    chunks = _exported(context_of(request).tickler.schedules, visible.owner)
    first = await anext(chunks, b"")  # before the status is sent, so that an unavailable store gets a 503
    return Stream(_chained(first, chunks), media_type=NDJSON)


HANDLERS = [import_schedules, export_schedules]


async def _imported(request: HttpRequest) -> AsyncIterator[bytes]:
    """Put the lines and yield their results. What was put stays put if a later line fails."""
    context, caller = context_of(request), caller_of(request)
    put = refused = line = 0
    affected = AffectedOwners()
    failure: TicklerError | None = None
    try:
        async for result in import_lines(
            context.tickler.schedules,
            body_chunks(request.receive),
            check=lambda schedule: _check(caller, schedule),
            pace=context.pace,
            aside=off_loop(request),
        ):
            put, refused, line = put + (result.error is None), refused + (result.error is not None), result.line
            if result.error is None and result.owner is not None:
                affected.add(result.owner)
            yield _line(result)
    except TicklerError as error:
        failure = error
    await record_many(request, "imported", affected, f"{put} put, {refused} refused")
    if failure is not None:
        outcome = "some from this line on were put, import them again" if isinstance(failure, PartlyWritten) else _NOTHING_PUT
        yield _line(LineResult(line=line + 1, error=f"{outcome}: {problem_of(failure).detail}"))


async def _exported(schedules: Schedules, owner: str | None) -> AsyncIterator[bytes]:
    failed: list[StoredSchedule] = []
    async for chunk in export_lines(schedules, owner=owner, left_out=failed.append):
        yield chunk + b"".join(map(_error_line, failed))
        failed.clear()
    yield b"".join(map(_error_line, failed))


def _error_line(schedule: StoredSchedule) -> bytes:
    """Return a line that an import refuses."""
    reason = "was written by a newer Tickler: upgrade" if schedule.newer else f"is unreadable ({schedule.reason}): put it again"
    return msgspec.json.encode({"owner": schedule.owner, "key": schedule.key, "error": reason}) + b"\n"


async def _chained(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk


def _check(caller: Caller, schedule: Schedule) -> None:
    """Refuse a line that the caller may not write."""
    if not caller.can_see(schedule.owner):
        raise Refused(404, "unknown owner", "owner")
    check_target(caller, schedule.target)


def _line(result: LineResult) -> bytes:
    return msgspec.json.encode(result) + b"\n"
