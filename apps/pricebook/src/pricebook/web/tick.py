"""`/tick`: an outside cron beats, where no process of pricebook stays up: settles, carries on and sends what is due."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, route
from litestar.enums import HttpMethod

from pricebook.app.handlers import begin_sweeps
from pricebook.app.pricebook import Pricebook
from pricebook.errors import InvalidField
from pricebook.web.context import HttpRequest, book_of, web_of
from pricebook.web.query_options import number, read_options
from tickler import RunOptions
from tickler.deliver import Summary
from tickler.web import Refused

BUDGET_MS, MAX_BUDGET_MS = 30_000, 300_000
DRAIN_S = 30  # for what is being worked on when the budget is spent


@route("/tick", http_method=[HttpMethod.GET, HttpMethod.POST], status_code=200)
async def tick(request: HttpRequest) -> Response[bytes]:
    """Do what is due, and say what was done. Any number of beats may come at once."""
    _check_secret(request)
    summary = await beat(book_of(request), _budget_ms(request))
    return Response(msgspec.json.encode(summary), media_type="application/json")


TICK_ROUTES: list[Any] = [tick]


async def beat(book: Pricebook, budget_ms: int) -> Summary:
    """Follow what was written to the table, and do what is due, within about this time."""
    await begin_sweeps(book)
    await book.settling.consume(budget_ms=max(1, budget_ms // 3))
    return await book.t.tick(budget_ms, RunOptions(drain=DRAIN_S))


def _budget_ms(request: HttpRequest) -> int:
    given = number(read_options(request, ("budget_ms",)), "budget_ms")
    budget_ms = BUDGET_MS if given is None else given
    if not 1 <= budget_ms <= MAX_BUDGET_MS:
        raise InvalidField("budget_ms", f"{budget_ms} is invalid: use 1 to {MAX_BUDGET_MS:,} milliseconds")
    return budget_ms


def _check_secret(request: HttpRequest) -> None:
    """Refuse a beat without the secret. Without a secret in the settings there is no such page."""
    secret = book_of(request).settings.tick_secret
    if not secret:
        raise Refused(404, "there is no /tick here: set PRICEBOOK_TICK_SECRET to have one")
    web_of(request).check_secret(request.scope, secret, "PRICEBOOK_TICK_SECRET")
