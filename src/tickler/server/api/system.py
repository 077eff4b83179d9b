"""What concerns the whole of it: ticks, numbers, the doctor, who did what, health, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from litestar import MediaType, Response, get, route
from litestar.enums import HttpMethod
from litestar.response import ServerSentEvent, ServerSentEventMessage

from tickler.errors import TicklerError
from tickler.records.activity import Event
from tickler.server.authorization import Nothing, visible_owner
from tickler.server.context import HttpRequest, caller, service_of
from tickler.server.doctor_lock import examine, repair_all
from tickler.server.event_stream import events_of
from tickler.server.json_body import answered, empty_body
from tickler.server.openapi.document import document
from tickler.server.problems import Refused
from tickler.server.query_params import MAX_LISTED, QueryParams
from tickler.server.stats import Stats, stats

READY_S = 5.0
READ_AGAIN_S = 1.0
PULSE_S = 2.0
FRESH = 0.9  # of a pulse: numbers so young serve whoever else watches, and never the same watcher twice
MAX_BUDGET_MS = 300_000


@route("/v1/tick", http_method=[HttpMethod.GET, HttpMethod.POST], opt={"scope": "operate", "all_owners": True}, status_code=200)
async def tick(request: HttpRequest) -> Response[bytes]:
    """Claim and deliver what is due now, for hosts where an outside cron beats; some of them can only send GET."""
    query = QueryParams(request, "budget_ms")
    if request.method == "POST":
        await empty_body(request)
    summary = await service_of(request).tickler.tick(query.number("budget_ms", 50_000, MAX_BUDGET_MS))
    return answered(summary)


@get("/v1/stats", opt={"scope": "read"})
async def get_stats(request: HttpRequest) -> Response[bytes]:
    """How it stands now, in numbers that cost little however much there is."""
    QueryParams(request)
    return answered(await stats(service_of(request).tickler, caller(request).owner))


@get("/v1/forecast", opt={"scope": "read", "all_owners": True})
async def get_forecast(request: HttpRequest) -> Response[bytes]:
    """How much is to come: by hour over a week, by minute over an hour."""
    QueryParams(request)
    return answered(await service_of(request).tickler.forecasts.for_page())


@get("/v1/doctor", opt={"scope": "read", "all_owners": True})
async def get_doctor(request: HttpRequest) -> Response[bytes]:
    """What is wrong, as far as a few quick looks tell; with `deep=true` everything is compared, which takes its time."""
    query = QueryParams(request, "deep")
    deep = query.one_of("deep", ("true", "false")) == "true"
    return answered(await examine(request) if deep else await service_of(request).tickler.doctor())


@route("/v1/doctor:repair", http_method=[HttpMethod.POST], opt={"scope": "operate", "all_owners": True}, status_code=200)
async def repair(request: HttpRequest) -> Response[bytes]:
    """Look at everything, and mend what can be mended while workers run."""
    QueryParams(request)
    await empty_body(request)
    return answered(await repair_all(request))


@get("/v1/audit", opt={"scope": "read"})
async def list_deeds(request: HttpRequest) -> Response[bytes]:
    """Who changed, triggered or retried what, the latest first."""
    query = QueryParams(request, "owner", "limit", "after")
    try:
        owner = visible_owner(request, query.text("owner"))
    except Nothing:
        return answered({"items": [], "next": None})
    limit = query.number("limit", 100, MAX_LISTED)
    return answered(await service_of(request).tickler.audit.list(owner=owner, limit=limit, after=query.text("after")))


@get("/v1/live", opt={"scope": "read"})
async def live(request: HttpRequest) -> ServerSentEvent:
    """Attempts as they happen, and the numbers every two seconds, as server-sent events, for as long as the token is valid."""
    QueryParams(request)
    return ServerSentEvent(_events(request))


@get("/health/live", opt={"scope": "nothing"}, media_type=MediaType.TEXT)
async def is_live(request: HttpRequest) -> str:
    """The process answers."""
    return "alive"


@get("/health/ready", opt={"scope": "nothing"}, media_type=MediaType.TEXT)
async def is_ready(request: HttpRequest) -> str:
    """The store answers too. Many who ask at once share one look at it."""
    service = service_of(request)
    try:
        async with asyncio.timeout(READY_S):
            await service.next_due.get(None, service.tickler.index.next_due, READ_AGAIN_S)
    except (TicklerError, TimeoutError) as error:
        service.not_ready.say("not ready: %s", str(error) or f"the store did not answer within {READY_S:g} s")
        raise Refused(503, "the store does not answer: see the log of the service") from None
    return "ready"


@get("/metrics", opt={"scope": "read", "all_owners": True})
async def metrics(request: HttpRequest) -> Response[bytes]:
    """For Prometheus."""
    service = service_of(request)
    return Response(await service.metrics.render(), headers={"content-type": service.metrics.media_type})


@get("/openapi.json", opt={"scope": "nothing"})
async def openapi(request: HttpRequest) -> Response[bytes]:
    """This API, described."""
    return answered(document())


HANDLERS = [tick, get_stats, get_forecast, get_doctor, repair, list_deeds, live, is_live, is_ready, metrics, openapi]


async def _events(request: HttpRequest) -> AsyncIterator[ServerSentEventMessage]:
    service, who = service_of(request), caller(request)
    owner = who.owner

    async def numbers() -> Stats:
        return await service.numbers.get(owner, lambda: stats(service.tickler, owner), FRESH * PULSE_S)

    with service.live.watching() as queue:
        for event in list(service.live.recent):
            if owner is None or event.owner == owner:
                yield _message("fire", event)
        yield _message("stats", await numbers())
        told_at = service.tickler.now_ms()
        async for event_or_pulse in events_of(queue, owner, PULSE_S):
            if event_or_pulse is not None:
                yield _message("fire", event_or_pulse)
            if service.tickler.now_ms() - told_at >= PULSE_S * 1000:
                told_at = service.tickler.now_ms()
                if not await service.admits(who):
                    return
                yield _message("stats", await numbers())


def _message(kind: str, value: Event | msgspec.Struct) -> ServerSentEventMessage:
    return ServerSentEventMessage(event=kind, data=msgspec.json.encode(value).decode())
