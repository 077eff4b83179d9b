"""Gives every handler the service's shared state and the caller of its request."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from litestar import Request
from msgspec import field

from tickler.client import Tickler
from tickler.database.pacing import Pace
from tickler.deliver.log_throttle import ThrottledLog
from tickler.observe.metrics import Metrics
from tickler.server.event_stream import EventStream
from tickler.server.middleware.caller import Caller, caller_in
from tickler.server.per_caller_pool import PerCallerPool
from tickler.server.settings import ServerSettings
from tickler.server.single_flight import SingleFlight
from tickler.server.stats import Stats
from tickler.web.forms import Forms
from tickler.web.rate_limit import RateLimit, failure_rate_limit
from tickler.web.sessions import Sessions

log = logging.getLogger("tickler.server")

CONTEXT = "tickler.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context(msgspec.Struct, eq=False):
    """A Tickler, and the state that the service's requests share."""

    tickler: Tickler
    settings: ServerSettings
    sessions: Sessions
    forms: Forms
    event_stream: EventStream
    metrics: Metrics
    runs_here: bool  # a worker runs in this process
    deep_doctor_runs: bool = False
    failures: RateLimit = field(default_factory=failure_rate_limit)  # of addresses that send wrong tokens
    preview_pool: PerCallerPool = field(default_factory=lambda: PerCallerPool("tickler-preview", threads=2))
    # For long bodies and payloads. One thread: a second would only compete with the event loop.
    reading_pool: PerCallerPool = field(default_factory=lambda: PerCallerPool("tickler-reading", threads=1))
    pace: Pace = field(default_factory=Pace)  # of imports
    stats: SingleFlight[Stats] = field(default_factory=SingleFlight)
    next_due: SingleFlight[int | None] = field(default_factory=SingleFlight)
    not_ready: ThrottledLog = field(default_factory=lambda: ThrottledLog(log, logging.WARNING, "not ready, %d times more"))

    async def still_admits(self, caller: Caller) -> bool:
        """Check an admitted caller again, during requests that can outlast a token or session."""
        if caller.token_id is None:
            return not await self.tickler.tokens.exist()
        if caller.session is not None and not await self.sessions.is_active(caller.session):
            return False
        return await self.tickler.tokens.get(caller.token_id) is not None


def context_of(request: HttpRequest) -> Context:
    context: Context = request.scope[CONTEXT]  # type: ignore[literal-required]  # a key of ours
    return context


def caller_of(request: HttpRequest) -> Caller:
    return caller_in(request.scope)
