"""What every handler is given: the service itself, and who asks it."""

from __future__ import annotations

import logging
from typing import Any

from litestar import Request

from tickler.client import Tickler
from tickler.database.pacing import Pace
from tickler.deliver.log_throttle import ThrottledLog
from tickler.observe.metrics import Metrics
from tickler.server.event_stream import EventStream
from tickler.server.middleware.caller import Caller, caller_of
from tickler.server.middleware.rate_limit import failure_rate_limit
from tickler.server.middleware.sessions import Sessions
from tickler.server.per_caller_pool import PerCallerPool
from tickler.server.settings import ServerSettings
from tickler.server.single_flight import SingleFlight
from tickler.server.stats import Stats

log = logging.getLogger("tickler.server")

SERVICE = "tickler.service"  # in an ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context:
    """A Tickler, and what the service has beside it."""

    def __init__(
        self,
        tickler: Tickler,
        settings: ServerSettings,
        sessions: Sessions,
        live: EventStream,
        metrics: Metrics,
        *,
        runs_here: bool,
    ) -> None:
        self.tickler = tickler
        self.settings = settings
        self.sessions = sessions
        self.live = live
        self.metrics = metrics
        self.runs_here = runs_here  # a runner works in this process
        self.is_examined = False  # the doctor looks at everything right now
        self.failures = failure_rate_limit()  # of whoever shows wrong tokens
        self.preview_pool = PerCallerPool("tickler-preview", threads=2)
        # Of long bodies and payloads; a second thread would take its time from the loop.
        self.reading_pool = PerCallerPool("tickler-reading", threads=1)
        self.pace = Pace()  # of imports
        self.numbers: SingleFlight[Stats] = SingleFlight()
        self.next_due: SingleFlight[int | None] = SingleFlight()
        self.not_ready = ThrottledLog(log, logging.WARNING, "not ready, %d times more")

    async def admits(self, who: Caller) -> bool:
        """Whether somebody who was let in would be let in again: for what takes longer than a token may last."""
        if who.token_id is None:
            return not await self.tickler.tokens.exist()
        if who.session is not None and not await self.sessions.goes_on(who.session):
            return False
        return await self.tickler.tokens.get(who.token_id) is not None


def service_of(request: HttpRequest) -> Context:
    service: Context = request.scope[SERVICE]  # type: ignore[literal-required]  # a key of ours
    return service


def caller(request: HttpRequest) -> Caller:
    return caller_of(request.scope)
