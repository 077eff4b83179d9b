"""`/tick`: an outside cron beats, where no process of slothpost stays up: drafts, publishes and polls what is due."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, route
from litestar.enums import HttpMethod
from msgspec import Meta

from slothpost.web.api.decoding import JSON, read_query
from slothpost.web.api.problems import PROBLEM_HANDLERS
from slothpost.web.context import HttpRequest, slothpost_of, web_of
from tickler import RunOptions
from tickler.web import Refused

BUDGET_MS, MAX_BUDGET_MS = 30_000, 300_000
# A post that is being published when the budget is spent must end: X would leave it unconfirmed otherwise.
PUBLISH_S = 60


class TickQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a beat looks for what is due."""

    budget_ms: Annotated[int, Meta(ge=1, le=MAX_BUDGET_MS)] = BUDGET_MS


@route("/tick", http_method=[HttpMethod.GET, HttpMethod.POST], status_code=200, exception_handlers=PROBLEM_HANDLERS)
async def tick(request: HttpRequest) -> Response[bytes]:
    """Do what is due, and say what was done. Any number of beats may come at once."""
    _check_secret(request)
    budget_ms = read_query(TickQuery, request.scope["query_string"]).budget_ms
    summary = await slothpost_of(request).t.tick(budget_ms, RunOptions(drain=PUBLISH_S))
    return Response(msgspec.json.encode(summary), media_type=JSON)


TICK_ROUTES: list[Any] = [tick]


def _check_secret(request: HttpRequest) -> None:
    """Refuse a beat without the secret. Without a secret in the settings there is no such page."""
    secret = slothpost_of(request).settings.tick_secret
    if not secret:
        raise Refused(404, "there is no /tick here: set SLOTHPOST_TICK_SECRET to have one")
    web_of(request).check_secret(request.scope, secret, "SLOTHPOST_TICK_SECRET")
