"""The service as a whole: ticks, stats, forecast, doctor, audit log, events, health, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from litestar import MediaType, Response, get, route
from litestar.enums import HttpMethod
from litestar.response import ServerSentEvent, ServerSentEventMessage

from tickler.errors import TicklerError
from tickler.records.activity import Event
from tickler.server.authorization import owner_filter
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.doctor_lock import examine, repair_all
from tickler.server.event_stream import events_of
from tickler.server.json_body import empty_body, empty_page, json_response
from tickler.server.openapi.document import document
from tickler.server.query_params import BUDGET_MS, LIMIT, QueryParams
from tickler.server.stats import Stats, stats
from tickler.web.problems import Refused

READY_TIMEOUT_S = 5.0
READY_CACHE_S = 1.0
PULSE_S = 2.0
STATS_SHARE = 0.9  # of a pulse: streams share stats of that age, and none gets the same twice


@route("/v1/tick", http_method=[HttpMethod.GET, HttpMethod.POST], opt={"scope": "operate", "all_owners": True}, status_code=200)
async def tick(request: HttpRequest) -> Response[bytes]:
    """Claim and deliver what is due now, for hosts driven by an external cron; some can only send GET."""
    query = QueryParams(request, "budget_ms")
    if request.method == "POST":
        await empty_body(request)
    summary = await context_of(request).tickler.tick(query.number(BUDGET_MS))
    return json_response(summary)


@get("/v1/stats", opt={"scope": "read"})
async def get_stats(request: HttpRequest) -> Response[bytes]:
    """Return counts of the current state; their cost does not grow with the number of schedules."""
    QueryParams(request)
    return json_response(await stats(context_of(request).tickler, caller_of(request).owner))


@get("/v1/forecast", opt={"scope": "read", "all_owners": True})
async def get_forecast(request: HttpRequest) -> Response[bytes]:
    """Return how many fires are due, by hour over a week and by minute over an hour."""
    QueryParams(request)
    return json_response(await context_of(request).tickler.forecasts.for_page())


@get("/v1/doctor", opt={"scope": "read", "all_owners": True})
async def get_doctor(request: HttpRequest) -> Response[bytes]:
    """Return the findings of quick checks; with `deep=true`, of a slow scan of the whole store."""
    query = QueryParams(request, "deep")
    deep = query.one_of("deep", ("true", "false")) == "true"
    return json_response(await examine(request) if deep else await context_of(request).tickler.doctor())


@route("/v1/doctor:repair", http_method=[HttpMethod.POST], opt={"scope": "operate", "all_owners": True}, status_code=200)
async def repair(request: HttpRequest) -> Response[bytes]:
    """Scan the whole store, and repair what can be repaired while workers run."""
    QueryParams(request)
    await empty_body(request)
    return json_response(await repair_all(request))


@get("/v1/audit", opt={"scope": "read"})
async def list_audit_entries(request: HttpRequest) -> Response[bytes]:
    """List audit entries, latest first."""
    query = QueryParams(request, "owner", "limit", "after")
    visible = owner_filter(request, query.text("owner"))
    if visible is None:
        return empty_page()
    audit, limit = context_of(request).tickler.audit, query.number(LIMIT)
    return json_response(await audit.list(owner=visible.owner, limit=limit, after=query.text("after")))


@get("/v1/live", opt={"scope": "read"})
async def stream_events(request: HttpRequest) -> ServerSentEvent:
    """Stream attempts, and stats every two seconds, as server-sent events while the token is valid."""
    QueryParams(request)
    return ServerSentEvent(_events(request))


@get("/health/live", opt={"scope": "nothing"}, media_type=MediaType.TEXT)
async def is_live(request: HttpRequest) -> str:
    """Answer while the process runs."""
    return "alive"


@get("/health/ready", opt={"scope": "nothing"}, media_type=MediaType.TEXT)
async def is_ready(request: HttpRequest) -> str:
    """Answer while the store does too. Concurrent probes share one read."""
    context = context_of(request)
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await context.next_due.get(None, context.tickler.index.next_due, READY_CACHE_S)
    except (TicklerError, TimeoutError) as error:
        context.not_ready.log("not ready: %s", str(error) or f"the store did not answer within {READY_TIMEOUT_S:g} s")
        raise Refused(503, "the store does not answer: see the log of the service") from None
    return "ready"


@get("/metrics", opt={"scope": "read", "all_owners": True})
async def metrics(request: HttpRequest) -> Response[bytes]:
    """Return metrics in Prometheus format."""
    context = context_of(request)
    return Response(await context.metrics.render(), headers={"content-type": context.metrics.media_type})


@get("/openapi.json", opt={"scope": "nothing"})
async def openapi(request: HttpRequest) -> Response[bytes]:
    """Return the OpenAPI document."""
    return json_response(document())


HANDLERS = [
    tick, get_stats, get_forecast, get_doctor, repair, list_audit_entries, stream_events, is_live, is_ready, metrics, openapi,
]  # fmt: skip


async def _events(request: HttpRequest) -> AsyncIterator[ServerSentEventMessage]:
    context, caller = context_of(request), caller_of(request)
    owner = caller.owner

    async def current_stats() -> Stats:
        return await context.stats.get(owner, lambda: stats(context.tickler, owner), STATS_SHARE * PULSE_S)

    with context.event_stream.subscribe() as queue:
        for event in list(context.event_stream.recent):
            if owner is None or event.owner == owner:
                yield _message("fire", event)
        yield _message("stats", await current_stats())
        sent_at = context.tickler.now_ms()
        async for event_or_pulse in events_of(queue, owner, PULSE_S):
            if event_or_pulse is not None:
                yield _message("fire", event_or_pulse)
            if context.tickler.now_ms() - sent_at >= PULSE_S * 1000:
                sent_at = context.tickler.now_ms()
                if not await context.still_admits(caller):
                    return
                yield _message("stats", await current_stats())


def _message(kind: str, value: Event | msgspec.Struct) -> ServerSentEventMessage:
    return ServerSentEventMessage(event=kind, data=msgspec.json.encode(value).decode())
