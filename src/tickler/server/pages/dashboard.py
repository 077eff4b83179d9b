"""*Now*: counts, live fires, clocks and workers. *Audit log*: who changed what."""

from __future__ import annotations

from litestar import Response, get

from tickler.records.worker_status import MISSING_MS, STOPPED
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.pages.rendering import page
from tickler.server.stats import stats

AUDIT_LOG_PAGE = 50
SHOWN_MS = 3_600_000  # hide workers that were last seen longer ago
STOPPED_MS = 300_000  # the same for workers that have stopped


@get("/", opt={"scope": "read"})
async def dashboard(request: HttpRequest) -> Response[str]:
    service, who = context_of(request), caller_of(request)
    numbers = await stats(service.tickler, who.owner)
    first = await service.tickler.schedules.list(owner=who.owner, limit=1)
    shown_ms = {STOPPED: STOPPED_MS}
    workers = [each for each in numbers.workers if numbers.now_ms - each.seen_at < shown_ms.get(each.doing, SHOWN_MS)]
    return await page(
        request, "dashboard", "now",
        numbers=numbers, workers=workers, is_empty=not first.items,
        missing_ms=MISSING_MS, shown_ms=SHOWN_MS, stopped_ms=STOPPED_MS,
    )  # fmt: skip


@get("/audit", opt={"scope": "read"})
async def audit_log(request: HttpRequest) -> Response[str]:
    after = request.query_params.get("after") or None
    entries = await context_of(request).tickler.audit.list(owner=caller_of(request).owner, limit=AUDIT_LOG_PAGE, after=after)
    return await page(request, "audit_log", "audit_log", entries=entries)


HANDLERS = [dashboard, audit_log]
