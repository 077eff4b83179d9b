"""Gives every handler the service's shared state and the caller of its request."""

from __future__ import annotations

import logging
from typing import Any

from litestar import Request

from tickler.client import Tickler
from tickler.database.pacing import Pace
from tickler.deliver.log_throttle import ThrottledLog
from tickler.observe.metrics import Metrics
from tickler.server.event_stream import EventStream
from tickler.server.middleware.caller import Caller, caller_in
from tickler.server.middleware.rate_limit import failure_rate_limit
from tickler.server.middleware.sessions import Sessions
from tickler.server.per_caller_pool import PerCallerPool
from tickler.server.settings import ServerSettings
from tickler.server.single_flight import SingleFlight
from tickler.server.stats import Stats

log = logging.getLogger("tickler.server")

CONTEXT = "tickler.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context:
    """A Tickler, and the state that the service's requests share."""

    def __init__(
        self,
        tickler: Tickler,
        settings: ServerSettings,
        sessions: Sessions,
        event_stream: EventStream,
        metrics: Metrics,
        *,
        runs_here: bool,
    ) -> None:
        self.tickler = tickler
        self.settings = settings
        self.sessions = sessions
        self.event_stream = event_stream
        self.metrics = metrics
        self.runs_here = runs_here  # a runner works in this process
        self.deep_doctor_runs = False
        self.failures = failure_rate_limit()  # of addresses that send wrong tokens
        self.preview_pool = PerCallerPool("tickler-preview", threads=2)
        # For long bodies and payloads. One thread: a second would only compete with the event loop.
        self.reading_pool = PerCallerPool("tickler-reading", threads=1)
        self.pace = Pace()  # of imports
        self.stats: SingleFlight[Stats] = SingleFlight()
        self.next_due: SingleFlight[int | None] = SingleFlight()
        self.not_ready = ThrottledLog(log, logging.WARNING, "not ready, %d times more")

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
